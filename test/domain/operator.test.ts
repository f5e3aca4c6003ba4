import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  type Decider,
  mayDecide,
  type Permission,
  type PersonRole,
  permissions,
  permissionsOf,
  type Role,
  scope,
  typesOf,
} from '../../domain/operator.ts'
import { isFreeName, namesNobody, operatorNameOf, roleOfGroups, safeReturn } from '../../domain/sign-in.ts'

describe('operator', () => {
  test('a token without scopes may what its role may', () => {
    for (const role of Object.keys(permissions) as Role[]) {
      expect(permissionsOf({ role, scopes: [] })).toEqual(permissions[role])
    }
  })

  test.each<[Role, string[], Permission[]]>([
    ['admin', ['read'], ['read']],
    ['admin', ['read', 'decide'], ['read', 'decide']],
    ['agent', ['read'], ['read']],
    // What a role has not, no scope gives.
    ['viewer', ['decide'], []],
    ['ingest', ['read'], []],
    ['agent', ['decide', 'write_config'], []],
    // A word of a later version takes away, as every scope does.
    ['approver', ['fly'], []],
    ['approver', ['type:disk_pressure'], ['read', 'record', 'manage_incident', 'decide', 'audit', 'read_config']],
    ['admin', ['type:disk_pressure'], ['read', 'record', 'manage_incident', 'decide', 'audit', 'read_config']],
    ['admin', ['type:disk_pressure', 'decide', 'write_config'], ['decide']],
  ])('%s with the scopes %j may %j', (role, scopes, may) => {
    expect(permissionsOf({ role, scopes })).toEqual(may)
  })

  test('types are read from scopes, and none means all', () => {
    expect(typesOf({ scopes: ['read', 'type:disk_pressure', 'type:question'] })).toEqual(['disk_pressure', 'question'])
    expect(typesOf({ scopes: ['read'] })).toBeNull()
    expect(['type:Disk', 'type:', 'everything', ''].filter((each) => scope.safeParse(each).success)).toEqual([])
  })

  const anna: Decider = { name: 'anna', role: 'approver', maxRisk: 'high', incidentTypes: null, disabled: false }

  test.each<[string, Partial<Decider>, { risk: string; incidentType?: string }, string | null]>([
    ['an approver decides up to her risk', {}, { risk: 'high' }, null],
    ['and below it', {}, { risk: 'none' }, null],
    ['and not above it', {}, { risk: 'critical' }, 'anna decides about risks up to high, and this one is critical'],
    [
      'an admin is limited like anybody',
      { role: 'admin', maxRisk: 'low' },
      { risk: 'medium' },
      'anna decides about risks up to low, and this one is medium',
    ],
    ['an operator decides nothing', { role: 'operator' }, { risk: 'low' }, 'anna (operator) may not decide approvals'],
    ['a viewer decides nothing', { role: 'viewer' }, { risk: 'low' }, 'anna (viewer) may not decide approvals'],
    ['who is disabled decides nothing', { disabled: true }, { risk: 'low' }, 'anna is disabled'],
    ['her types are hers', { incidentTypes: ['disk_pressure'] }, { risk: 'low' }, null],
    [
      'others are not',
      { incidentTypes: ['question'] },
      { risk: 'low' },
      'anna decides about incidents of other types than disk_pressure',
    ],
    [
      'an empty list is none',
      { incidentTypes: [] },
      { risk: 'low' },
      'anna decides about incidents of other types than disk_pressure',
    ],
    [
      'an unknown risk is above everybody',
      { maxRisk: 'critical' },
      { risk: 'apocalyptic' },
      'nobody decides about the unknown risk apocalyptic',
    ],
    ['so is none at all', { maxRisk: 'critical' }, { risk: '' }, 'nobody decides about the unknown risk '],
  ])('%s', (_, person, { risk, incidentType = 'disk_pressure' }, why) => {
    expect(mayDecide({ ...anna, ...person }, { risk, incidentType })).toBe(why)
  })
})

describe('sign in', () => {
  const roles: Record<string, PersonRole> = { sre: 'approver', admins: 'admin', all: 'viewer' }

  test('the strongest of the mapped groups counts, and what every object has is no group', () => {
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

  test('wherever a link points, the browser stays here', () => {
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
        const path = safeReturn(pieces.join(''))
        const url = new URL(path, 'https://nightshift.example.com')
        return url.origin === 'https://nightshift.example.com' && path.startsWith('/') && !path.startsWith('//')
      }),
      { numRuns: 20_000 },
    )
    expect(safeReturn('/incidents/inc_1?tab=log#42')).toBe('/incidents/inc_1?tab=log#42')
    for (const trick of [
      '//evil.example',
      '/..//evil.example',
      '/.//evil.example',
      '/\\evil.example',
      'https://evil.example',
    ]) {
      expect([trick, safeReturn(trick)]).toEqual([trick, '/'])
    }
    expect([safeReturn(undefined), safeReturn(`/${'x'.repeat(600)}`)]).toEqual(['/', '/'])
  })

  test('nobody from a provider is called like the people of a start, or like nobody in particular', () => {
    expect(['admin', 'Approver', 'unknown', 'SYSTEM', 'start', 'anna'].filter(isFreeName)).toEqual(['anna'])
    expect(['admin', 'unknown', 'sql'].filter(namesNobody)).toEqual(['unknown', 'sql'])
  })
})
