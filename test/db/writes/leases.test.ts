import { expect, test } from '@jest/globals'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { leasesOfOthers } from '../../../db/inventory/registry.ts'
import { acceptEffect, finishEffect } from '../../../db/writes/effects.ts'
import { takeLeases } from '../../../db/writes/leases.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { claimedIncident, openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()

async function holding(target: ResourceRef): Promise<string> {
  const incidentId = await claimedIncident(database.db)
  const holder = { incidentId, attempt: 1, callId: 'c1_0' }
  expect(await database.db.transaction().execute((trx) => takeLeases(trx, holder, [target]))).toBe(true)
  return incidentId
}

const abandon = (incidentId: string) =>
  database.db
    .transaction()
    .execute((trx) =>
      closeIncident(
        trx,
        incidentId,
        2,
        { status: 'escalated', code: 'WATCHDOG_SILENT', reason: 'no run carries it' },
        { actor: 'system:nightshift', stepKey: null, nextAttempt: true },
      ),
    )

test('a target is free again when the incident that held it is closed', async () => {
  const target: ResourceRef = { kind: 'shard', id: 'free' }
  const incidentId = await holding(target)
  const other = await openedIncident(database.db)
  expect(await leasesOfOthers(database.db, other, [target])).toHaveLength(1)
  await abandon(incidentId)
  expect(await leasesOfOthers(database.db, other, [target])).toEqual([])
})

test('a write that still runs keeps its target until it ends, even if its run is gone', async () => {
  const target: ResourceRef = { kind: 'shard', id: 'busy' }
  const incidentId = await holding(target)
  const other = await openedIncident(database.db)
  const effect = { key: `${incidentId}.1:1:tool_started:0`, incidentId, tool: 'converge_shard', actionDigest: 'd' }
  await acceptEffect(database.db, effect)
  await abandon(incidentId)
  expect(await leasesOfOthers(database.db, other, [target])).toEqual([{ target: 'shard:busy', incidentId }])
  await finishEffect(database.db, effect.key, { status: 'done', detail: '', result: {} })
  expect(await leasesOfOthers(database.db, other, [target])).toEqual([])
})
