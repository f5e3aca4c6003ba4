import { expect, test } from '@jest/globals'
import { type Permission, permissions, permissionsOf, type Role, scope, typesOf } from '../../domain/operator.ts'

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
  ['approver', ['type:disk_pressure'], ['read', 'record', 'manage_incident', 'decide', 'read_config']],
  ['admin', ['type:disk_pressure'], ['read', 'record', 'manage_incident', 'decide', 'read_config']],
  ['admin', ['type:disk_pressure', 'decide', 'write_config'], ['decide']],
])('%s with the scopes %j may %j', (role, scopes, may) => {
  expect(permissionsOf({ role, scopes })).toEqual(may)
})

test('types are read from scopes, and none means all', () => {
  expect(typesOf({ scopes: ['read', 'type:disk_pressure', 'type:question'] })).toEqual(['disk_pressure', 'question'])
  expect(typesOf({ scopes: ['read'] })).toBeNull()
  expect(['type:Disk', 'type:', 'everything', ''].filter((each) => scope.safeParse(each).success)).toEqual([])
})
