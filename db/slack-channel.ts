import { sql } from 'kysely'
import type { Approval } from '../domain/approval.ts'
import type { EscalationReport } from '../domain/escalation.ts'
import type { EventMetadata } from '../domain/event.ts'
import type { Incident } from '../domain/incident.ts'
import { listApprovals } from './approvals/find.ts'
import { recordAudit, recordSecurityEvent } from './audit.ts'
import { type Db, now, systemScope, type Trx } from './connect.ts'
import type { DueDelivery } from './deliveries.ts'
import { incidentById } from './incidents.ts'
import { countAttempt, type Limit } from './sessions.ts'

/** How long one call may hold the channel: its own 10 s and room for the rows. */
const leaseSeconds = 30

/**
 * Sets where people are notified from now on; null: nowhere, and what is still due for Slack never goes out. The worker that starts last
 * is right.
 */
export async function useSlackChannel(db: Db, channel: string | null): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await trx
      .updateTable('slackChannel')
      .set({ active: false })
      .where('active', '=', true)
      .where(sql<boolean>`channel is distinct from ${channel}`)
      .execute()
    if (channel !== null) {
      await trx
        .insertInto('slackChannel')
        .values({ channel, active: true })
        .onConflict((conflict) => conflict.column('channel').doUpdateSet({ active: true }))
        .execute()
      return
    }
    await trx
      .updateTable('delivery')
      .set({
        status: 'dropped',
        response: 'Slack is configured no more',
        leasedUntil: null,
        finishedAt: now,
      })
      .where('destination', 'like', 'slack.%')
      .where('status', 'in', ['pending', 'sending'])
      .execute()
  })
}

export type LeasedChannel = { channel: string; until: string; delivery: DueDelivery }

/**
 * Takes the channel and what is due for it, oldest first; null when there is none or the channel is not ready. One at a
 * time over all processes: so a thread has one first message, and Slack's one message a second is kept.
 */
export async function leaseSlackChannel(db: Db): Promise<LeasedChannel | null> {
  return await db.transaction().execute(async (trx) => {
    const free = await trx
      .selectFrom('slackChannel')
      .select('channel')
      .where('active', '=', true)
      .where('readyAt', '<=', now)
      .forUpdate()
      .skipLocked()
      .executeTakeFirst()
    if (!free) return null
    const until = sql<string>`nightshift_now() + make_interval(secs => ${leaseSeconds})`
    const delivery = await trx
      .updateTable('delivery')
      .set({ status: 'sending', leasedUntil: until })
      .where('id', '=', (eb) =>
        eb
          .selectFrom('delivery')
          .select('id')
          .where('destination', 'like', 'slack.%')
          .where('nextAt', '<=', now)
          .where((where) =>
            where.or([
              where('status', '=', 'pending'),
              where.and([where('status', '=', 'sending'), where('leasedUntil', '<=', now)]),
            ]),
          )
          // In a storm of alerts a question does not wait behind news of what is known already.
          .orderBy(sql`array_position(array['slack.tell', 'slack.card'], destination)`)
          .orderBy('nextAt')
          .orderBy('id')
          .limit(1)
          .forUpdate(),
      )
      .returning(['id', 'messageId', 'destination', 'incidentId', 'attempt', 'notification'])
      .executeTakeFirst()
    if (!delivery) return null
    await joinSame(trx, delivery)
    const leased = await trx
      .updateTable('slackChannel')
      .set({ readyAt: until })
      .where('channel', '=', free.channel)
      .returning(['channel', 'readyAt'])
      .executeTakeFirstOrThrow()
    return { channel: leased.channel, until: leased.readyAt, delivery }
  })
}

/** What brings the same message up to date is done by one of them: it reads the rows after this. */
async function joinSame(trx: Trx, { id, incidentId, destination, notification }: DueDelivery): Promise<void> {
  if (destination === 'slack.tell') return
  await trx
    .updateTable('delivery')
    .set({ status: 'sent', response: 'told together with another', finishedAt: now })
    .where('incidentId', '=', incidentId)
    .where('destination', '=', destination)
    .where('notification', '=', JSON.stringify(notification))
    .where('status', '=', 'pending')
    .where('id', '!=', id)
    .execute()
}

/** Lets the channel go, to be ready again after so many seconds; one whose lease ran out holds nothing any more. */
export async function releaseSlackChannel(
  trx: Trx,
  { channel, until }: { channel: string; until: string },
  seconds: number,
): Promise<void> {
  await trx
    .updateTable('slackChannel')
    .set({ readyAt: sql`nightshift_now() + make_interval(secs => ${seconds})` })
    .where('channel', '=', channel)
    .where('readyAt', '=', until)
    .execute()
}

/** Where Slack keeps one of our messages. */
type SlackPlace = { channel: string; ts: string }

export type SlackView = {
  incident: Incident
  /** What the person reads who is handed it; null unless it is escalated. */
  report: EscalationReport | null
  /** The newest first. */
  approvals: Approval[]
  /** `posted`: it had a first message, even where Slack has lost that since. */
  thread: { posted: boolean; place: SlackPlace | null }
}

/** What the thread of an incident has to show now. */
export async function slackView(db: Db, incidentId: string): Promise<SlackView | null> {
  const incident = await incidentById(db, incidentId)
  const thread = await db.selectFrom('slackThread').selectAll().where('incidentId', '=', incidentId).executeTakeFirst()
  if (!incident || !thread) return null
  const approvals = await listApprovals(systemScope(db), { incidentId }, { before: null, limit: 100 })
  const report = incident.status === 'escalated' ? await newestReport(db, incidentId) : null
  return { incident, report, approvals, thread: { posted: thread.posted, place: placeOf(thread) } }
}

/** The incident whose thread this is; null for every other thread. */
export async function incidentOfThread(db: Db, place: { channel: string; thread: string }): Promise<Incident | null> {
  const row = await db
    .selectFrom('slackThread')
    .select('incidentId')
    .where('channel', '=', place.channel)
    .where('ts', '=', place.thread)
    .executeTakeFirst()
  return row ? await incidentById(db, row.incidentId) : null
}

async function newestReport(db: Db, incidentId: string): Promise<EscalationReport | null> {
  const row = await db
    .selectFrom('incidentEvent')
    .select('metadata')
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'escalated')
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return (row?.metadata as EventMetadata['escalated'] | undefined)?.report ?? null
}

/** The message that asks for an approval: null when none was ever posted, `place` null when Slack has lost it. */
export async function slackCard(db: Db, approvalId: string): Promise<{ place: SlackPlace | null } | null> {
  const row = await db.selectFrom('slackCard').selectAll().where('approvalId', '=', approvalId).executeTakeFirst()
  return row ? { place: placeOf(row) } : null
}

export async function saveThread(trx: Trx, incidentId: string, place: SlackPlace | null): Promise<void> {
  await trx
    .updateTable('slackThread')
    .set({ channel: place?.channel ?? null, ts: place?.ts ?? null, posted: true })
    .where('incidentId', '=', incidentId)
    .execute()
}

export async function saveCard(trx: Trx, approvalId: string, place: SlackPlace | null): Promise<void> {
  const at = { channel: place?.channel ?? null, ts: place?.ts ?? null }
  await trx
    .insertInto('slackCard')
    .values({ approvalId, ...at })
    .onConflict((conflict) => conflict.column('approvalId').doUpdateSet(at))
    .execute()
}

function placeOf({ channel, ts }: { channel: string | null; ts: string | null }): SlackPlace | null {
  return channel !== null && ts !== null ? { channel, ts } : null
}

/**
 * Takes a request of Slack's once, whichever process it reaches: false for one that was here before. Remembered for longer
 * than its time is believed either way, whatever the clocks of the processes say.
 */
export async function takeSlackRequest(db: Db, signature: string): Promise<boolean> {
  const taken = await db
    .insertInto('slackRequest')
    .values({ signature })
    .onConflict((conflict) => conflict.column('signature').doNothing())
    .returning('signature')
    .executeTakeFirst()
  if (!taken) return false
  await sql`
    delete from slack_request where signature in (
      select signature from slack_request where received_at < nightshift_now() - interval '1 hour' limit 20)`.execute(
    db,
  )
  return true
}

/**
 * Writes down a request that looks like an attack: on the incident whose approval it names, as every other door does, or in
 * the audit where it names none. Both are capped, so that a flood fills neither.
 */
export async function suspectSlackRequest(
  db: Db,
  approvalId: string | null,
  event: { code: string; subject: string; detail: string; address: string; network: string },
  limit: Limit,
): Promise<void> {
  const { code, subject, detail, address, network } = event
  await db.transaction().execute(async (trx) => {
    const approval = approvalId
      ? await trx.selectFrom('approval').select('incidentId').where('id', '=', approvalId).executeTakeFirst()
      : undefined
    if (approval) return await recordSecurityEvent(trx, approval.incidentId, { code, door: 'slack', subject, detail })
    if ((await countAttempt(trx, `slack:${network}`, limit)).over) return
    const what = `security.${code.toLowerCase()}` as const
    await recordAudit(trx, { who: 'unknown', what, subject, detail, address })
  })
}
