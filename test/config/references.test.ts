import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from '@jest/globals'
import { readAuthorities, readRef } from '../../config/references.ts'
import { temporaryDirectory } from '../support/directory.ts'

const directory = temporaryDirectory()
afterAll(() => directory.remove())

const written = (text: string): string => {
  const path = join(directory.path, 'secret')
  writeFileSync(path, text)
  return path
}

test('a token of a file is read without the end of its line', () => {
  expect(readRef(`file:${written('  a-token-of-a-source\n')}`)).toBe('a-token-of-a-source')
})

test.each(['PRIVATE KEY', 'CERTIFICATE'])('PEM (%s) is read byte by byte', (label) => {
  const pem = `# of the proxy\n-----BEGIN ${label}-----\nMIIB\n-----END ${label}-----\n\n`
  expect(readRef(`file:${written(pem)}`)).toBe(pem)
})

test('authorities are read byte by byte', () => {
  const pem = '\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'
  expect(readAuthorities(written(pem))).toBe(pem)
})
