#!/usr/bin/env node
import { join } from 'node:path'
import { rootDir, runUnderNode24 } from './node24.js'

const jest = 'node_modules/jest/bin/jest.js'

/**
 * The programs that scripts of package.json start, for example `node bin/run.js test -- test/db`.
 */
const programs = {
  ...Object.fromEntries(
    ['test', 'test:whole', 'test:long', 'test:contract', 'test:browser'].map((each) => [each, [jest]]),
  ),
  bench: ['bench/main.ts'],
  eval: ['bench/main.ts', 'eval'],
  simulate: ['test/simulation/main.ts'],
  pictures: ['test/pictures/main.ts'],
  'test:real': ['test/real/main.ts'],
  'build-web': ['start/web.ts'],
  package: ['package/main.ts'],
  mutate: ['node_modules/@stryker-mutator/core/bin/stryker.js', 'run'],
}

const [name = '', ...words] = process.argv.slice(2)
const program = programs[name]
if (!program) {
  console.error(`There is no "${name}": node bin/run.js ${Object.keys(programs).join('|')} [options]`)
  process.exit(2)
}
const [file, ...given] = program
// Names the kind of tests, which jest.config.js reads.
if (name.startsWith('test:')) process.env.NIGHTSHIFT_TESTS = name.slice('test:'.length)
// Lets a measurement read and write in the folder where it was started. All other programs work in
// the repository.
const cwd = ['bench', 'eval', 'simulate'].includes(name) ? {} : { cwd: rootDir }
await runUnderNode24([join(rootDir, file), ...given, ...words], cwd)
