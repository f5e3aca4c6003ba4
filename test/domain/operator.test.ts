import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { type Decider, mayDecide } from '../../domain/approvers.ts'
import { coversRight, formatRight, parseRight, refusalOfRights } from '../../domain/decision-right.ts'
import { type Permission, permissions, permissionsOf, type Role, scope, typesOf } from '../../domain/permissions.ts'

test('a token without scopes has the rights of its role', () => {
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

const at = '2026-12-02T03:00:00.000000Z'
const anna: Decider = {
  name: 'anna',
  role: 'approver',
  maxRisk: 'high',
  incidentTypes: null,
  rights: [],
  disabled: false,
}

test.each<[string, Partial<Decider>, { risk: string; incidentType?: string }, string | null]>([
  ['an approver decides up to her risk', {}, { risk: 'high' }, null],
  ['and below it', {}, { risk: 'none' }, null],
  ['and not above it', {}, { risk: 'critical' }, 'anna may decide risks up to high, and this one is critical'],
  [
    'an admin is limited like anybody',
    { role: 'admin', maxRisk: 'low' },
    { risk: 'medium' },
    'anna may decide risks up to low, and this one is medium',
  ],
  ['an operator decides nothing', { role: 'operator' }, { risk: 'low' }, 'anna (operator) may not decide approvals'],
  ['a viewer decides nothing', { role: 'viewer' }, { risk: 'low' }, 'anna (viewer) may not decide approvals'],
  ['who is disabled decides nothing', { disabled: true }, { risk: 'low' }, 'anna is disabled'],
  ['her types are hers', { incidentTypes: ['disk_pressure'] }, { risk: 'low' }, null],
  [
    'others are not',
    { incidentTypes: ['question'] },
    { risk: 'low' },
    'anna may not decide about incidents of type disk_pressure',
  ],
  [
    'an empty list is none',
    { incidentTypes: [] },
    { risk: 'low' },
    'anna may not decide about incidents of type disk_pressure',
  ],
  [
    'an unknown risk is above everybody',
    { maxRisk: 'critical' },
    { risk: 'apocalyptic' },
    'nobody decides about the unknown risk apocalyptic',
  ],
  ['so is none at all', { maxRisk: 'critical' }, { risk: '' }, 'nobody decides about the unknown risk '],
])('%s', (_, person, { risk, incidentType = 'disk_pressure' }, why) => {
  expect(mayDecide({ ...anna, ...person }, { risk, incidentType, targets: [], at })).toBe(why)
})

const onCall = ['critical database:orders-* vm:db-1 type:disk_pressure until:2026-12-06T06:00:00Z']

test.each<[string, string[], string, string | null]>([
  ['a right of its own reaches beyond the limits', onCall, 'database:orders-eu', null],
  ['and its other resources', onCall, 'database:orders-eu vm:db-1', null],
  [
    'every target has to be covered',
    onCall,
    'database:orders-eu vm:db-2',
    'anna decides about database:orders-*, vm:db-1, and this call is about vm:db-2',
  ],
  [
    'a kind is not another kind',
    onCall,
    'host:orders-eu',
    'anna decides about database:orders-*, vm:db-1, and this call is about host:orders-eu',
  ],
  [
    'letters before the pattern are not covered',
    onCall,
    'database:old-orders-eu',
    'anna decides about database:orders-*, vm:db-1, and this call is about database:old-orders-eu',
  ],
  [
    'a call that names no resource may touch any',
    onCall,
    '',
    'anna decides about database:orders-*, vm:db-1, and this call names no resource',
  ],
  [
    'it ends when it says',
    ['critical database:* until:2026-12-01'],
    'database:a',
    'anna may decide risks up to high, and this one is critical',
  ],
  [
    'two rights are never added up',
    ['critical type:question', 'high database:*'],
    'database:a',
    'anna may not decide about incidents of type disk_pressure',
  ],
  [
    'what cannot be read gives nothing',
    ['critical database:* until:soon', 'everything'],
    'database:a',
    'anna may decide risks up to high, and this one is critical',
  ],
])('%s', (_, rights, targets, why) => {
  const named = targets
    .split(' ')
    .filter(Boolean)
    .map((each) => ({ kind: each.split(':')[0] ?? '', id: each.split(':')[1] ?? '' }))
  const asked = { risk: 'critical', incidentType: 'disk_pressure', targets: named, at }
  expect(mayDecide({ ...anna, rights }, asked)).toBe(why)
})

test.each([
  ['', '"" is not a risk'],
  ['none host:a', '"none" is not a risk'],
  ['high printer:a', '"printer:a" is not a resource'],
  ['high host:', '"host:" has an invalid id'],
  ['high host', '"host" is not a resource'],
  ['high *', '"*" is not a resource'],
  ['high host:*a*b*c*d*', 'more than four *'],
  ['high until:tomorrow', '"until:tomorrow" is not a time'],
  ['high until:2026-02-30', 'is not a time'],
  ['high until:2026-12-06T06:00', 'is not a time'],
  ['high type:Disk', '"type:Disk" is not an incident type'],
  ['high type:', '"type:" is not an incident type'],
])('the right "%s" is refused: %s', (words, why) => {
  expect(() => parseRight(words)).toThrow(why)
})

test('a right is stored in one spelling, with the same meaning', () => {
  const written = ' critical, host:db-*  type:disk_pressure until:2026-12-06 '
  const stored = formatRight(parseRight(written))
  expect(stored).toBe('critical host:db-* type:disk_pressure until:2026-12-06T00:00:00.000Z')
  expect(parseRight(stored)).toEqual(parseRight(written))
})

test('a right covers another only if it covers everything that the other covers', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 4 })
  const read = (pattern: string) => parseRight(`low host:${pattern}`)
  const may = (pattern: string, id: string) =>
    refusalOfRights('anna', [read(pattern)], {
      risk: 'low',
      incidentType: 'x',
      targets: [{ kind: 'host', id }],
      at,
    }) === null
  const asRegExp = (pattern: string) => new RegExp(`^${pattern.replaceAll('*', '.*')}$`)
  const ids = ['', 'a', 'b', 'ab', 'ba', 'aa', 'aab', 'abab', 'bbb', 'baab', 'ababa', 'abcab'].filter(Boolean)
  fc.assert(
    fc.property(letters, letters, (held, wanted) => {
      for (const id of ids) expect(may(held, id)).toBe(asRegExp(held).test(id))
      if (coversRight(read(held), read(wanted)))
        for (const id of ids) expect(may(held, id) || !may(wanted, id)).toBe(true)
    }),
    { numRuns: 500 },
  )
})
