import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ensureOperator } from '../../../db/access/tokens.ts'
import type { Trx } from '../../../db/connect.ts'
import { claimIncident, incidentById } from '../../../db/incidents/incidents.ts'
import {
  cancelUnbegunChange,
  openManualChange,
  overdueManualChanges,
  reviewManualChange,
  unbegunManualChanges,
} from '../../../db/incidents/manual-change.ts'
import { append } from '../../../db/log/append.ts'
import { recordAudit } from '../../../db/log/audit.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { manualChangeType } from '../../../domain/manual-change.ts'
import { moveClock, useDatabase } from '../../support/database.ts'

const database = useDatabase()
beforeEach(() => moveClock(database.owner, '0 seconds'))

const change = {
  tool: 'vm_stop',
  arguments: { id: 'vm-118', reason: 'it fills the pool' },
  targets: [{ kind: 'vm', id: 'vm-118' }],
  stateFingerprint: 'state',
  risk: 'critical',
  reason: 'it fills the pool',
  mayVote: true,
  summary: 'Stop vm-118',
} as const

const inTrx = <T>(act: (trx: Trx) => Promise<T>) => database.db.transaction().execute(act)

async function askedAlone(reason: string = change.reason, alone = true): Promise<string> {
  const operatorId = await ensureOperator(database.db, 'ada', 'admin')
  const person = { operatorId, actor: 'user:ada', name: 'ada' }
  return (
    await inTrx((trx) => openManualChange(trx, person, { ...change, reason, targets: [...change.targets], alone }))
  ).id
}

const requester = async (trx: Trx) =>
  await trx
    .selectFrom('operator')
    .select(['id as operatorId', 'name'])
    .where('name', '=', 'ada')
    .executeTakeFirstOrThrow()

/** The row of a review, and what it does to the incident. */
async function reviewed(trx: Trx, id: string, { operatorId, name }: { operatorId: string; name: string }) {
  const metadata = { verdict: 'right', text: 'fine', operatorId, name } as const
  await append(trx, id, null, { kind: 'change_reviewed', actor: `user:${name}`, detail: 'fine', metadata })
  await trx.updateTable('incident').set({ reviewWantedAt: null }).where('id', '=', id).execute()
}

const started = {
  callId: 'c1_0',
  tool: 'vm_stop',
  effect: 'write',
  risk: 'critical',
  targets: [...change.targets],
  actionDigest: 'digest',
  approvalId: null,
}

test('a write that did not begin within ten minutes is cancelled, reports it, and needs no review', async () => {
  const id = await askedAlone()
  await moveClock(database.owner, '9 minutes')
  expect(await overdueManualChanges(database.db)).toEqual([])
  expect(await unbegunManualChanges(database.db)).toEqual([id])
  await moveClock(database.owner, '11 minutes')
  expect(await overdueManualChanges(database.db)).toEqual([id])
  await cancelUnbegunChange(database.db, id)
  expect(await incidentById(database.db, id)).toMatchObject({
    status: 'cancelled',
    resolution: 'The write did not begin within ten minutes, and nothing was done. Request the write again.',
    reviewWantedAt: null,
    cancelledUntil: null,
  })
  expect(await unbegunManualChanges(database.db)).toEqual([])
  const claim = { incidentId: id, attempt: 1, workflowId: 'late', role: 'leader', groupId: 'g', timeBudgetSeconds: 60 }
  expect(await inTrx((trx) => claimIncident(trx, { ...claim, role: 'leader' }))).toBe(false)
  expect((await verifyIncident(database.db, id)).differences).toEqual([])
})

test.each<[string, RegExp, (trx: Trx, id: string) => Promise<unknown>]>([
  [
    'waits for no review any more',
    /nobody reviewed it/,
    (trx, id) => sql`update incident set review_wanted_at = null where id = ${id}`.execute(trx),
  ],
  [
    'is asked for twice in one log',
    /more than one row requests this write/,
    async (trx, id) => {
      const [row] = (
        await sql<{ metadata: never }>`select metadata from incident_event where kind = 'change_requested'`.execute(trx)
      ).rows
      await append(trx, id, null, {
        kind: 'change_requested',
        actor: 'user:bob',
        detail: 'bob',
        metadata: row!.metadata,
      })
    },
  ],
  [
    'is audited in the name of another',
    /no row of the audit shows/,
    (trx, id) => recordAudit(trx, { who: 'bob', what: 'change.requested', subject: id, detail: 'Stop vm-118' }),
  ],
  [
    'is reviewed by the one who did it',
    /is not confirmed by another person/,
    async (trx, id) => {
      const { operatorId, name } = await requester(trx)
      await recordAudit(trx, { who: name, what: 'change.reviewed', subject: id, detail: 'right: fine' })
      await reviewed(trx, id, { operatorId, name })
    },
  ],
  [
    'is reviewed by somebody of whom the audit says nothing',
    /is not confirmed by another person/,
    async (trx, id) =>
      reviewed(trx, id, { operatorId: await ensureOperator(database.db, 'bob', 'admin'), name: 'bob' }),
  ],
  [
    'was carried out otherwise than it was asked for',
    /what was carried out/,
    async (trx, id) => {
      await append(trx, id, null, {
        kind: 'tool_started',
        actor: 'user:ada',
        detail: 'Calling tool: vm_stop',
        metadata: { ...started, arguments: { ...change.arguments, id: 'vm-119' } } as never,
      })
    },
  ],
])("a person's own write that %s is a difference", async (_, words, alter) => {
  const id = await askedAlone()
  expect((await verifyIncident(database.db, id)).differences).toEqual([])
  await inTrx((trx) => alter(trx, id))
  expect((await verifyIncident(database.db, id)).differences.map(({ what }) => what).join()).toMatch(words)
})

test('a write that was inserted in the name of a person who did not ask is a difference', async () => {
  const id = await askedAlone()
  const forged = await inTrx(async (trx) => {
    const { rows } = await sql<{ id: string }>`
      insert into incident (id, type, severity, severity_source, title, status)
      values ('inc_forged', ${manualChangeType}, 'info', 'person', 'ada: Stop vm-1', 'open') returning id`.execute(trx)
    const [row] = (
      await sql<{ metadata: never }>`select metadata from incident_event where incident_id = ${id}`.execute(trx)
    ).rows
    await append(trx, 'inc_forged', null, {
      kind: 'change_requested',
      actor: 'user:ada',
      detail: 'ada',
      metadata: row!.metadata,
    })
    return rows[0]?.id ?? ''
  })
  const found = (await verifyIncident(database.db, forged)).differences.map(({ what }) => what)
  expect(found).toContain('no row of the audit shows that this person requested exactly this write')
})

test('a reason that names only other acts is no difference', async () => {
  const id = await askedAlone('it stands here, alone, as inc_x: it was', false)
  expect((await verifyIncident(database.db, id)).differences).toEqual([])
})

test('a review by another person passes', async () => {
  const id = await askedAlone()
  const operatorId = await ensureOperator(database.db, 'cleo', 'admin')
  await database.owner.updateTable('operator').set({ maxRisk: 'critical' }).where('id', '=', operatorId).execute()
  const person = { operatorId, actor: 'user:cleo', name: 'cleo' }
  expect(await reviewManualChange(database.db, person, id, { verdict: 'right', text: 'well done' })).toEqual({
    outcome: 'reviewed',
  })
  expect((await verifyIncident(database.db, id)).differences).toEqual([])
})
