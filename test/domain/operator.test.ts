import { expect, test } from '@jest/globals'
import { type Decider, mayDecide } from '../../domain/approvers.ts'
import { type Permission, permissions, permissionsOf, type Role, scope, typesOf } from '../../domain/permissions.ts'

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
