import { sql } from 'kysely'
import { newId } from '../../domain/digest.ts'
import type { EventKind, NewEvent } from '../../domain/event.ts'
import { endings } from '../../domain/route.ts'
import type { Trx } from '../connect.ts'
import type { OutboxDestination } from './destinations.ts'

/**
 * Slack's entries in the outbox. `tell` posts the text of a notification. `root` and `card` contain
 * no text: they update a Slack message from the rows when they are sent, so that several updates
 * become one.
 */
type SlackDestination = 'slack.tell' | 'slack.root' | 'slack.card'

/**
 * Posts to Slack: one thread for each incident. The first message of a thread and its approval
 * cards are updated from the rows.
 */
export const slackDestination: OutboxDestination = {
  // Skips messages about the owner and the ending, because the thread itself shows them.
  entriesFor: async (trx, trigger, _told, gone) =>
    !endings.includes(trigger) && !gone?.has('slack.tell') && (await isSlackOn(trx)) ? ['slack.tell'] : [],
  prepare: openThread,
  afterAppend: refreshThread,
}

/** Whether a worker sends to Slack. Read in the transaction of the event. */
async function isSlackOn(trx: Trx): Promise<boolean> {
  const row = await trx.selectFrom('slackChannel').select('channel').where('active', '=', true).executeTakeFirst()
  return row !== undefined
}

/** Creates a thread for this incident, whether or not Slack already has its first message. */
async function openThread(trx: Trx, incidentId: string): Promise<void> {
  await trx
    .insertInto('slackThread')
    .values({ incidentId })
    .onConflict((conflict) => conflict.column('incidentId').doNothing())
    .execute()
}

/** Kinds of rows that change the thread's first message. */
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

/**
 * Makes the Slack messages due that show a new log row, in the transaction of every writer of a
 * row.
 */
async function refreshThread(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  if (!shownAtRoot.has(event.kind)) return
  const stale: { destination: SlackDestination; about: object }[] = [{ destination: 'slack.root', about: {} }]
  switch (event.kind) {
    case 'approval_decided':
    case 'approval_expired':
    case 'approval_withdrawn':
      // Skips the card of a joined question, because the card is in the thread of the incident that
      // asked.
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
