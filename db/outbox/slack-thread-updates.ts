import { sql } from 'kysely'
import { newId } from '../../domain/digest.ts'
import type { EventKind, NewEvent } from '../../domain/event.ts'
import { endings } from '../../domain/route.ts'
import type { Trx } from '../connect.ts'
import type { OutboxDestination } from './destinations.ts'

/**
 * Slack's part of the outbox. `tell` posts a notification's words; `root` and `card` carry nothing:
 * they bring a message up to the rows when sent, so that several at once are one.
 */
type SlackDestination = 'slack.tell' | 'slack.root' | 'slack.card'

/** Slack's channel: a thread an incident, whose first message and approval cards follow rows. */
export const slackDestination: OutboxDestination = {
  // The thread shows by itself who has it and how it ended.
  entriesFor: async (trx, trigger, _told, gone) =>
    !endings.includes(trigger) && !gone?.has('slack.tell') && (await isSlackOn(trx)) ? ['slack.tell'] : [],
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

/** Makes due what Slack shows of a new row, in the row's transaction, whichever door wrote it. */
async function refreshThread(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  if (!shownAtRoot.has(event.kind)) return
  const stale: { destination: SlackDestination; about: object }[] = [{ destination: 'slack.root', about: {} }]
  switch (event.kind) {
    case 'approval_decided':
    case 'approval_expired':
    case 'approval_withdrawn':
      // The card of a question that it joined is in the thread of the incident that asked.
      if (!('joined' in event.metadata))
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
