import { expect, test } from '@jest/globals'
import { globsMeet } from '../../../safety/command/glob.ts'
import { normalise, pathFinding } from '../../../safety/command/paths.ts'

const literal = (text: string) => ({ text, literal: true, quoting: 'bare' as const, pattern: null })
const pattern = (text: string) => ({ text, literal: false, quoting: 'bare' as const, pattern: text })

test.each([
  ['/etc//./ssh/../shadow', ['/etc/shadow']],
  ['/../../etc', ['/etc']],
  ['~/x', ['/root/x']],
  ['~bob/x', ['/home/bob/x']],
  ['$HOME/x', ['/root/x']],
  ['a/../b', ['b']],
  ['a/..', ['.']],
  ['../../etc/shadow', ['../../etc/shadow', '/etc/shadow']],
])('a path is the same however it is spelled: %s', (path, expected) => expect(normalise(path)).toEqual(expected))

test('a relative path leads where cd went', () => expect(normalise('x', ['/etc'])).toEqual(['x', '/etc/x']))

test.each([
  '/etc/shadow',
  '/etc/shadow-',
  '~/.ssh',
  '.ssh/id_rsa',
  'a/b.pem',
  '/proc/1/environ',
  '/proc/self/root/etc/passwd',
  '/dev/sda',
  '.env',
  '~/.bash_history',
  '/var/lib/x/secrets/y',
  '/srv/app/.env.production',
  '/x/.nightshift/db',
])('holds secrets: %s', (path) => expect(pathFinding(literal(path), [], false)).toBe('secret'))

test.each([
  '/etc/passwd',
  '/var/log/syslog',
  '/etc/ssl/certs/ca.pem',
  '/proc/loadavg',
  '/dev/null',
  '/etc/ssh/sshd_config',
])('holds none: %s', (path) => expect(pathFinding(literal(path), [], false)).toBeNull())

test('a directory above secrets counts for whoever reads all of it', () => {
  for (const path of ['/', '/etc', '/root', '/home', '/home/bob', '/proc/1', '.', '..']) {
    expect(pathFinding(literal(path), [], true)).toBe('holds secrets')
  }
  expect(pathFinding(literal('/var/log'), [], true)).toBeNull()
})

test('a pattern counts as everything it could become', () => {
  for (const path of ['/etc/sh*', '/etc/shad?w', '/e*/shadow', '/proc/*/e*', '/home/*/.ssh/*', '/etc/[s]hadow', '*']) {
    expect(pathFinding(pattern(path), [], false)).toBe('secret')
  }
  for (const path of ['/var/log/*.log', '/proc/*/status', '/etc/*release']) {
    expect(pathFinding(pattern(path), [], false)).toBeNull()
  }
})

test('two patterns meet where one path fits both', () => {
  expect(globsMeet('/a/*c', '/a/b*')).toBe(true)
  expect(globsMeet('/a/**/x', '/a/b/c/*')).toBe(true)
  expect(globsMeet('/a/*', '/a/.x')).toBe(false)
  expect(globsMeet('/a/b', '/a')).toBe(false)
})
