import { expect } from '@jest/globals'
import { sql } from 'kysely'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import type { Db, Trx } from '../../../db/connect.ts'
import { type Closing, closeIncident } from '../../../db/incidents/close-incident.ts'
import { claimIncident } from '../../../db/incidents/incidents.ts'
import { append } from '../../../db/log/append.ts'
import { dueQueues, leaseQueue, releaseQueue } from '../../../db/outbox/address-queues.ts'
import { finishDelivery } from '../../../db/outbox/deliveries.ts'
import { releaseDuePages } from '../../../db/outbox/release-pages.ts'
import { agentActor, type NewEvent } from '../../../domain/event.ts'
import { anAlert, type TestDatabase } from '../../support/database.ts'
import { verified, wrote } from '../../support/events.ts'

/** What tests of a page that waits do with one incident, on a clock that stands until it is set. */

const opensAt = Date.parse('2099-11-29T03:10:00.500Z')

/** From here on the database's clock says what `setClock` wrote last. */
export async function standClock({ owner }: TestDatabase): Promise<void> {
  await sql`create table if not exists test_clock (at timestamptz not null)`.execute(owner)
  await sql`delete from test_clock`.execute(owner)
  await sql`insert into test_clock values (${new Date(opensAt).toISOString()})`.execute(owner)
  await sql`grant select on test_clock to public`.execute(owner)
  await sql`
    create or replace function nightshift_now() returns timestamptz language sql volatile parallel safe
    as $$ select at from test_clock $$`.execute(owner)
}

export async function setClock({ owner }: TestDatabase, seconds: number): Promise<void> {
  await sql`update test_clock set at = ${new Date(opensAt + seconds * 1_000).toISOString()}`.execute(owner)
}

/**
 * Every door of the page's life, each in a transaction of its own. `fail`: the process dies before
 * it commits.
 */
export type HeldIncident = { id: string; startsAt: string; fingerprint: string }

export async function opens(db: Db, at: number, change: Parameters<typeof anAlert>[0] = {}): Promise<HeldIncident> {
  const startsAt = new Date(opensAt + at * 1_000).toISOString()
  const alert = anAlert({ severity: 'critical', startsAt, ...change })
  const { incidentId } = await ingestAlert(db, alert)
  return { id: incidentId ?? '', startsAt, fingerprint: alert.fingerprint }
}

export async function alertEnds(db: Db, { startsAt, fingerprint }: HeldIncident, at: number): Promise<void> {
  const endsAt = new Date(opensAt + at * 1_000).toISOString()
  await ingestAlert(db, anAlert({ severity: 'critical', fingerprint, startsAt, status: 'resolved', endsAt }))
}

export async function alertRepeats(db: Db, { startsAt, fingerprint }: HeldIncident): Promise<void> {
  await ingestAlert(db, anAlert({ severity: 'critical', fingerprint, startsAt }))
}

export async function claims(trx: Trx, { id }: HeldIncident, attempt = 1): Promise<boolean> {
  const workflowId = `investigate:${id}:${attempt}`
  const claim = { incidentId: id, attempt, workflowId, role: 'leader', groupId: 'grp', timeBudgetSeconds: 60 } as const
  if (!(await claimIncident(trx, claim))) return false
  const metadata = { role: 'leader', groupId: 'grp', workflowId, config: {} } as const
  await append(trx, id, attempt, { kind: 'claimed', actor: agentActor, detail: 'claimed', metadata })
  return true
}

const rowOf = ({ kind, metadata, actor }: { kind: string; metadata: unknown; actor: string }) =>
  ({ kind, metadata, actor, detail: kind }) as unknown as NewEvent

export const writes = async (trx: Trx, { id }: HeldIncident) =>
  void (await append(trx, id, null, rowOf(wrote('c1_0', []))))
export const verifies = async (trx: Trx, { id }: HeldIncident, outcome: 'held' | 'not_held' | 'unproven') =>
  void (await append(trx, id, null, rowOf(verified('c1_0', outcome))))
export const modelFails = async (trx: Trx, { id }: HeldIncident) =>
  void (await append(
    trx,
    id,
    null,
    rowOf({
      kind: 'model_failed',
      actor: agentActor,
      metadata: { code: 'unreachable', status: null, activityAttempt: 1, retryAfterMs: null },
    }),
  ))

const endings = {
  repaired: { status: 'resolved', outcome: 'repaired', resolution: 'converged', claims: [], confidence: null },
  no_fault: { status: 'resolved', outcome: 'no_fault', resolution: 'nothing was wrong', claims: [], confidence: null },
  escalated: { status: 'escalated', reason: 'a person has to look', code: 'AGENT' },
  cancelled: { status: 'cancelled', reason: 'a planned failover' },
} satisfies Record<string, Closing>
export type EndingName = keyof typeof endings

export const ends = async (trx: Trx, { id }: HeldIncident, how: EndingName, actor = agentActor) =>
  await closeIncident(trx, id, null, endings[how], { actor, stepKey: null })

/** One round of a deliverer whose receivers answer at once. */
export async function deliverRound(db: Db): Promise<void> {
  await releaseDuePages(db)
  for (const queue of await dueQueues(db)) {
    for (;;) {
      const leased = await leaseQueue(db, queue)
      if (!leased) break
      await db.transaction().execute(async (trx) => {
        const sent = { status: 'sent', responseStatus: 200, response: '', retryAfterSeconds: 0 } as const
        for (const delivery of leased.deliveries) await finishDelivery(trx, delivery, sent)
        await releaseQueue(trx, leased, 0)
      })
    }
  }
}

export type PageRow = {
  status: string
  heldFor: number | null
  leftAfter: number | null
  why: string | null
  page: boolean
  response: string | null
}

/** The `critical` messages of an incident, with how long after the clock's beginning each left. */
export async function pagesOf(db: Db, { id }: HeldIncident): Promise<PageRow[]> {
  const since = (column: string) =>
    sql<
      number | null
    >`round(extract(epoch from ${sql.ref(column)} - ${new Date(opensAt).toISOString()}::timestamptz), 3)::float8`
  return await db
    .selectFrom('delivery')
    .select(['status', 'releasedWhy as why', 'response'])
    .select([since('holdUntil').as('heldFor'), since('finishedAt').as('leftAfter')])
    .select(sql<boolean>`(notification->>'page')::boolean`.as('page'))
    .where('incidentId', '=', id)
    .where(sql<boolean>`notification->>'trigger' = 'critical'`)
    .orderBy('id')
    .execute()
}

export async function gateNotes(db: Db, { id }: HeldIncident): Promise<string[]> {
  const rows = await db
    .selectFrom('incidentEvent')
    .select('detail')
    .where('incidentId', '=', id)
    .where(sql<boolean>`metadata->>'code' like 'page_%'`)
    .orderBy('seq')
    .execute()
  return rows.map(({ detail }) => detail)
}

export async function configured({ owner }: TestDatabase, settings: Record<string, string>): Promise<void> {
  await sql`delete from platform_config`.execute(owner)
  for (const [key, value] of Object.entries(settings))
    await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(owner)
  expect(Object.keys(settings).length).toBeGreaterThan(0)
}
