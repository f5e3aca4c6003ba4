import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { PersonRole } from '../../domain/permissions.ts'
import { isFreeName, isUnusableName, localReturnPath, operatorNameOf, roleOfGroups } from '../../domain/sign-in.ts'

const roles: Record<string, PersonRole> = { sre: 'approver', admins: 'admin', all: 'viewer' }

test('the strongest of the mapped groups counts, and names of object properties are no groups', () => {
  expect(roleOfGroups(['all', 'sre'], roles)).toBe('approver')
  expect(roleOfGroups(['admins', 'all'], roles)).toBe('admin')
  expect(roleOfGroups(['sales', 'constructor', '__proto__', 'toString', 'SRE'], roles)).toBeNull()
  expect(roleOfGroups([], roles)).toBeNull()
})

test.each([
  ['anna', 'anna'],
  ['anna@example.com', 'anna@example.com'],
  ['Anna van Dijk', 'Anna-van-Dijk'],
  ['admin approved\nby: bob', 'admin-approved-by-bob'],
  ['user:admin', 'user-admin'],
  ['\u202Eanna', 'anna'],
  ['', 'person'],
  ['日本', 'person'],
])('%j is called %j', (claimed, name) => {
  expect(operatorNameOf(claimed)).toBe(name)
})

test('no link leads the browser to another site', () => {
  const piece = fc.constantFrom(
    '/',
    '\\',
    '.',
    '..',
    'evil.example',
    ':',
    '@',
    '?',
    '#',
    '%2f',
    '\t',
    '\n',
    'https',
    ' ',
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const path = localReturnPath(pieces.join(''))
      const url = new URL(path, 'https://nightshift.example.com')
      return url.origin === 'https://nightshift.example.com' && path.startsWith('/') && !path.startsWith('//')
    }),
    { numRuns: 20_000 },
  )
  expect(localReturnPath('/incidents/inc_1?tab=log#42')).toBe('/incidents/inc_1?tab=log#42')
  for (const trick of [
    '//evil.example',
    '/..//evil.example',
    '/.//evil.example',
    '/\\evil.example',
    'https://evil.example',
  ]) {
    expect([trick, localReturnPath(trick)]).toEqual([trick, '/'])
  }
  expect([localReturnPath(undefined), localReturnPath(`/${'x'.repeat(600)}`)]).toEqual(['/', '/'])
})

test("a person of a provider never has the name of a start's account or a generic name", () => {
  expect(['admin', 'Approver', 'unknown', 'SYSTEM', 'start', 'anna'].filter(isFreeName)).toEqual(['anna'])
  expect(['admin', 'unknown', 'sql'].filter(isUnusableName)).toEqual(['unknown', 'sql'])
})
