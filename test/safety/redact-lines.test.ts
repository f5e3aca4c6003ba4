import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { redactKeyLines } from '../../safety/redact-lines.ts'

const { privateKey: pem } = generateKeyPairSync('rsa', {
  modulusLength: 2_048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
})
const key = pem.trim().split('\n')
/** What of it is secret. */
const body = key.slice(1, -1)

const left = (lines: readonly string[]) => {
  const said = redactKeyLines(lines).join('\n')
  return body.filter((each) => said.includes(each.slice(0, 16)))
}

test.each([
  ['whole', key],
  ['among other lines', ['starting up', ...key, 'listening on 8080']],
  ['cut off at its beginning', key.slice(9)],
  ['cut off at its end', key.slice(0, 9)],
  ['cut off on both sides', key.slice(9, 12)],
  ['by its last line alone', key.slice(-2)],
  ['by its first line alone', key.slice(0, 2)],
  ['behind the prefix of a program', key.map((line) => `INFO 12:00:00 main | ${line}`)],
  ['in the colours of a terminal', key.map((line) => `\u001b[32m${line}\u001b[0m`)],
  ['with lines of another thread in between', key.flatMap((line) => [line, 'GET /healthz 200'])],
])('a private key that is %s in lines is in none of them', (_, lines) => {
  expect(left(lines)).toEqual([])
})

test('lines around it stay as they are', () => {
  const [first, ...rest] = redactKeyLines(['starting up', ...key, 'listening on 8080'])
  expect([first, rest.at(-1)]).toEqual(['starting up', 'listening on 8080'])
})

test('digests, names and words of a log stay, and so does text after a beginning without an end', () => {
  const lines = [
    'a3f5'.repeat(16),
    'b4e6'.repeat(16),
    'sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'Deployment',
    'done',
  ]
  expect(redactKeyLines(lines)).toEqual(lines)
  const after = Array.from({ length: 300 }, (_, at) => `request ${at} took long`)
  expect(redactKeyLines(['-----BEGIN PRIVATE KEY-----', ...after])).toEqual(['-----BEGIN PRIVATE KEY-----', ...after])
})
