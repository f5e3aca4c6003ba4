import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { incidentById } from '../../../db/incidents/incidents.ts'
import { declareResources, leaseKeys, otherNames } from '../../../db/inventory/registry.ts'
import { readPolicy } from '../../../db/policy.ts'
import { readSettings } from '../../../db/settings.ts'
import { takeLeases } from '../../../db/writes/leases.ts'
import { importSource, platformSource, type SourceDeclaration } from '../../../domain/declared-resources.ts'
import type { Incident } from '../../../domain/incident.ts'
import { ref } from '../../../domain/registry.ts'
import { up } from '../../../migrations/0052-one-value.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

const declare = (source: typeof importSource, declared: SourceDeclaration) =>
  database.db.transaction().execute((trx) => declareResources(trx, source, declared))
const belongs = (node: string, shard: string) => ({
  from: ref('node', node),
  kind: 'belongs_to' as const,
  to: ref('shard', shard),
})

/** What the judge of this incident weighs of its surroundings. */
async function policyAbout(kind: 'node' | 'shard', id: string, target = ref(kind, id)) {
  const incidentId = await claimedIncident(database.db)
  const incident = { ...((await incidentById(database.db, incidentId)) as Incident), resource: ref(kind, id) }
  return await database.db.transaction().execute(async (trx) => {
    const facts = { name: 'converge_shard', names: { id: 'shard' as const } }
    const call = { facts, targets: [target], approvalId: null, isEnding: false }
    return await readPolicy(trx, incident, await readSettings(trx), call)
  })
}

test('the judge treats nothing as near if sources disagree on the group, from the node, its neighbours and both groups', async () => {
  await declare(platformSource, {
    resources: [
      ...['a', 'b', 'moot'].map((id) => ({ kind: 'node' as const, id })),
      ...['left', 'right'].map((id) => ({ kind: 'shard' as const, id })),
    ],
    relations: [belongs('a', 'left'), belongs('b', 'left'), belongs('moot', 'left')],
  })
  const near = async (kind: 'node' | 'shard', id: string) => (await policyAbout(kind, id)).vicinity.map(({ id }) => id)
  expect(await near('node', 'moot')).toEqual(['moot', 'left', 'a', 'b'])
  await declare(importSource, { resources: [], relations: [belongs('moot', 'right')] })
  expect(await near('node', 'moot')).toEqual(['moot'])
  expect(await near('node', 'a')).toEqual(['a', 'left', 'b'])
  expect(await near('shard', 'left')).toEqual(['left', 'a', 'b'])
  expect(await near('shard', 'right')).toEqual(['right'])
})

test('a lease of one of two nodes with a common name also locks the other node', async () => {
  const same = (node: string) => ({ from: ref('vm', 'v'), kind: 'same_as' as const, to: ref('node', node) })
  const resources = [
    { kind: 'vm' as const, id: 'v' },
    { kind: 'node' as const, id: 'v1' },
    { kind: 'node' as const, id: 'v2' },
  ]
  await declare(platformSource, { resources, relations: [same('v1')] })
  await declare(importSource, { resources: [], relations: [same('v2')] })
  const holder = { incidentId: await claimedIncident(database.db), attempt: 1, callId: 'c1_0' }
  await database.db.transaction().execute((trx) => takeLeases(trx, holder, [ref('node', 'v1')]))
  const { busy, vicinity } = await policyAbout('node', 'v2')
  expect([busy.map(({ incidentId }) => incidentId), vicinity]).toEqual([[holder.incidentId], [ref('node', 'v2')]])
})

test('two nodes that an older release merged are separated by the upgrade, and keep their one lease', async () => {
  await declare(importSource, {
    resources: ['o1', 'o2', 'o3'].map((id) => ({ kind: 'node' as const, id })),
    relations: [],
  })
  await sql`update resource set canonical = 'node:o1', lease_key = 'node:o1' where id in ('o1', 'o2')`.execute(
    database.owner,
  )
  expect((await otherNames(database.db, [ref('node', 'o1')])).size).toBe(1)
  await sql`drop index resource_by_lease_key`.execute(database.owner)
  await up(database.owner as never)
  expect((await otherNames(database.db, [ref('node', 'o1')])).size).toBe(0)
  expect(await leaseKeys(database.db, [ref('node', 'o1'), ref('node', 'o2')])).toEqual(['node:o1'])
})
