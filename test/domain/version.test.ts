import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from '@jest/globals'
import { version } from '../../domain/version.ts'

const sources = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.js'], { encoding: 'utf8' })
  .trim()
  .split('\n')
  .filter((path) => !path.startsWith('test/'))

test('the version is that of the package', () => {
  expect(version).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version)
})

test('no source file contains the version, or reads it from the package itself', () => {
  const typed = sources.filter((path) => {
    const text = readFileSync(path, 'utf8')
    return text.includes(`'${version}'`) || (path !== 'domain/version.ts' && /'(\.\.\/)+package\.json'/.test(text))
  })
  expect(typed).toEqual([])
})
