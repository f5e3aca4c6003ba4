import { sql } from 'kysely'
import { newId } from '../domain/digest.ts'
import type { Notification } from '../domain/escalation.ts'
import type { EventKind, NewEvent } from '../domain/event.ts'
import { mayDecide } from '../domain/operator.ts'
import type { NewSubscription, PushDevice } from '../domain/push.ts'
import { cleanse } from '../safety/redact.ts'
import { type Db, now, type Scope, type Trx } from './connect.ts'
import { readSettings } from './settings.ts'

/**
 * Who hears of what is appended: the channel in Slack and the browsers of people, each by its own
 * rows to send.
 */

/**
 * Of the outbox what goes to Slack. `tell` posts what a notification says; `root` and `card` carry nothing: they bring the
 * message up to what the rows say when it is sent, so that several at once are one.
 */
type SlackDestination = 'slack.tell' | 'slack.root' | 'slack.card'

/** Slack's channel: a thread for each incident, whose first message and approval cards follow the rows. */
const slackDestination: OutboxDestination = {
  // The thread shows a resolution by itself.
  entriesFor: async (trx, trigger) => (trigger !== 'resolved' && (await isSlackOn(trx)) ? ['slack.tell'] : []),
  prepare: openThread,
  afterAppend: refreshThread,
}

/** Is there a worker that tells Slack? Asked in the transaction of what there is to tell. */
async function isSlackOn(trx: Trx): Promise<boolean> {
  const row = await trx.selectFrom('slackChannel').select('channel').where('active', '=', true).executeTakeFirst()
  return row !== undefined
}

/** From here on this incident has a thread, whether or not Slack has its first message yet. */
async function openThread(trx: Trx, incidentId: string): Promise<void> {
  await trx
    .insertInto('slackThread')
    .values({ incidentId })
    .onConflict((conflict) => conflict.column('incidentId').doNothing())
    .execute()
}

/** Rows that change what the thread's first message says. */
const shownAtRoot = new Set<EventKind>([
  'claimed',
  'approval_requested',
  'approval_decided',
  'approval_expired',
  'approval_withdrawn',
  'resolved',
  'escalated',
  'cancelled',
  'noted',
  'alert_received',
])

/** Makes what Slack shows due to be brought up to a new row, in the row's own transaction and whichever door wrote it. */
async function refreshThread(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  if (!shownAtRoot.has(event.kind)) return
  const stale: { destination: SlackDestination; about: object }[] = [{ destination: 'slack.root', about: {} }]
  switch (event.kind) {
    case 'approval_decided':
    case 'approval_expired':
    case 'approval_withdrawn':
      stale.push({ destination: 'slack.card', about: { approvalId: event.metadata.approvalId } })
  }
  for (const { destination, about } of stale) {
    await trx
      .insertInto('delivery')
      .columns(['messageId', 'destination', 'incidentId', 'notification', 'attempt'])
      .expression((eb) =>
        eb
          .selectFrom('slackThread')
          .select([
            sql<string>`${newId('msg')}`.as('messageId'),
            sql<string>`${destination}`.as('destination'),
            'incidentId',
            sql<unknown>`${JSON.stringify(about)}::jsonb`.as('notification'),
            sql<number>`1`.as('attempt'),
          ])
          .where('incidentId', '=', incidentId),
      )
      .execute()
  }
}

export type PushKeys = { publicKey: string; privateKey: string }

/** The key pair of this installation; the first who asks makes it, with `generate`, and every process has the same. */
export async function pushKeys(db: Db, generate: () => PushKeys): Promise<PushKeys> {
  const stored = () => db.selectFrom('pushKey').select(['publicKey', 'privateKey']).executeTakeFirst()
  const known = await stored()
  if (known) return known
  await db
    .insertInto('pushKey')
    .values(generate())
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const made = await stored()
  if (!made) throw new Error('the key pair of web push was not stored')
  return made
}

/** A person has this many browsers at most: the oldest goes. */
const mostDevices = 20

/** Subscribes a browser of this person. One that subscribes again, or that another person now uses, changes hands. */
export async function subscribe(
  db: Db,
  operatorId: string,
  { endpoint, keys: { p256dh, auth } }: NewSubscription,
  name: string,
): Promise<PushDevice> {
  return await db.transaction().execute(async (trx) => {
    const values = { operatorId, p256dh, auth, name: cleanse(name) }
    const row = await trx
      .insertInto('pushSubscription')
      .values({ id: newId('psh'), endpoint, ...values })
      .onConflict((conflict) => conflict.column('endpoint').doUpdateSet(values))
      .returning(['id', 'name', 'createdAt', 'lastSentAt'])
      .executeTakeFirstOrThrow()
    const kept = trx
      .selectFrom('pushSubscription')
      .select('id')
      .where('operatorId', '=', operatorId)
      .orderBy('createdAt', 'desc')
      .orderBy('id', 'desc')
      .limit(mostDevices)
    await trx.deleteFrom('pushSubscription').where('operatorId', '=', operatorId).where('id', 'not in', kept).execute()
    return row
  })
}

/** The reader's own browsers, the newest first. */
export async function ownDevices({ db, reader }: Scope): Promise<PushDevice[]> {
  if (reader === 'system' || reader.operatorId === null) return []
  return await db
    .selectFrom('pushSubscription')
    .select(['id', 'name', 'createdAt', 'lastSentAt'])
    .where('operatorId', '=', reader.operatorId)
    .orderBy('createdAt', 'desc')
    .execute()
}

/** Removes a browser of this person. False: this person has no browser with this id. */
export async function unsubscribe(db: Db, operatorId: string, id: string): Promise<boolean> {
  const row = await db
    .deleteFrom('pushSubscription')
    .where('id', '=', id)
    .where('operatorId', '=', operatorId)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/** Where a browser is reached, with its keys; null where it is subscribed no more, or its person may sign in no more. */
export async function subscriptionById(db: Db, id: string) {
  const row = await db
    .selectFrom('pushSubscription')
    .innerJoin('operator', 'operator.id', 'pushSubscription.operatorId')
    .select(['endpoint', 'p256dh', 'auth'])
    .where('pushSubscription.id', '=', id)
    .where('operator.disabledAt', 'is', null)
    .executeTakeFirst()
  return row ?? null
}

/** The push service took a message for it, or says that there is no such browser any more. */
export async function noteSent(db: Db, id: string): Promise<void> {
  await db.updateTable('pushSubscription').set({ lastSentAt: now }).where('id', '=', id).execute()
}

export async function forgetDevice(db: Db, id: string): Promise<void> {
  await db.deleteFrom('pushSubscription').where('id', '=', id).execute()
}

export const pushPrefix = 'push.'

/** Browsers of the people who may decide what is asked: an entry of the outbox each. */
export const pushDestination: OutboxDestination = {
  async entriesFor(trx, trigger, about) {
    if (trigger !== 'approval') return []
    const rows = await devicesOfDeciders(trx)
    return rows.flatMap(({ id, disabledAt, ...decider }) =>
      about && mayDecide({ ...decider, disabled: disabledAt !== null }, about) !== null ? [] : [`${pushPrefix}${id}`],
    )
  },
}

async function devicesOfDeciders(trx: Trx) {
  return await trx
    .selectFrom('pushSubscription')
    .innerJoin('operator', 'operator.id', 'pushSubscription.operatorId')
    .select(['pushSubscription.id', 'operator.name', 'role', 'maxRisk', 'incidentTypes', 'disabledAt'])
    .execute()
}

export type Trigger = Notification['trigger']

/** What decides who may answer a question. */
type AskedAbout = { risk: string; incidentType: string }

/**
 * A channel that notifies people. The log and the outbox know this type alone: a new destination is a file with one of these and
 * a line in `destinations`.
 */
export type OutboxDestination = {
  /** The names of its entries in the outbox for a trigger; none where it is off or does not want to know. `about`: what is asked, of an approval. */
  entriesFor(trx: Trx, trigger: Trigger, about?: AskedAbout): Promise<string[]>
  /** Called once before its entries are stored. */
  prepare?(trx: Trx, incidentId: string): Promise<void>
  /** Called after each row of a log, in the row's transaction: makes due what the destination shows of it. */
  afterAppend?(trx: Trx, incidentId: string, event: NewEvent): Promise<void>
}

/** Where each kind of message goes: the first of these that has an address. */
const webhooks: Record<Trigger, string[]> = {
  critical: ['critical'],
  approval: ['approval'],
  escalated: ['escalated'],
  resolved: ['resolved'],
  watch: ['resolved', 'escalated'],
  reopened: ['escalated', 'resolved'],
  reminder: ['escalated'],
  digest: ['escalated'],
  quiet: ['escalated'],
  owner: ['escalated'],
  notice: ['escalated', 'critical'],
}

const webhookDestination: OutboxDestination = {
  async entriesFor(trx, trigger) {
    const settings = await readSettings(trx)
    const name = webhooks[trigger].find((each) => settings.value<string | null>(`webhook.${each}.url`))
    return name === undefined ? [] : [`webhook.${name}`]
  },
}

export const destinations: readonly OutboxDestination[] = [webhookDestination, slackDestination, pushDestination]

/** Calls every destination that follows the log. */
export async function tellDestinations(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  for (const { afterAppend } of destinations) await afterAppend?.(trx, incidentId, event)
}
