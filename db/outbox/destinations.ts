import type { DecisionSubject } from '../../domain/decision-right.ts'
import type { NewEvent } from '../../domain/event.ts'
import type { Trigger } from '../../domain/notification.ts'
import type { RoutedNews } from '../../domain/route.ts'
import type { Trx } from '../connect.ts'
import { readSettings } from '../settings.ts'
import { readAddresses } from './address-queues.ts'
import { pushDestination } from './push-subscriptions.ts'
import { routedDestination } from './routed-destinations.ts'
import { slackDestination } from './slack-thread-updates.ts'

/**
 * Channels that notify people of new log rows. This file has the webhooks; other files have Slack,
 * browsers and destinations.
 */

/**
 * Facts of a question that determine who may answer. `of`: the person who is next on the configured
 * list.
 */
export type AskedOf = Pick<DecisionSubject, 'risk' | 'targets'> & {
  of?: string | undefined
  dryRun?: { details: Record<string, unknown> } | null
}

/** The reported event, in the form in which routes use it. */
type ToldEntry = RoutedNews & { incidentId: string; asked?: AskedOf | undefined }

/**
 * A channel that notifies people. The log and the outbox know only this type. A new kind of
 * destination needs a file with a value of this type, and a line in `destinations`.
 */
export type OutboxDestination = {
  /**
   * Returns the names of this channel's outbox entries for a trigger; none if the channel is off or
   * does not want the trigger. Without `told`, returns all possible names. `gone`: addresses that
   * cannot be reached (`readAddresses`).
   */
  entriesFor(trx: Trx, trigger: Trigger, told?: ToldEntry, gone?: ReadonlySet<string>): Promise<string[]>
  /** Called once before the channel's entries are stored. */
  prepare?(trx: Trx, incidentId: string): Promise<void>
  /**
   * Called after each new log row, in its transaction. Makes the messages due that show this row.
   */
  afterAppend?(trx: Trx, incidentId: string, event: NewEvent): Promise<void>
}

/**
 * Webhooks for each kind of message, in order. The first webhook with an address is used. If no
 * webhook has an address, no webhook gets the message.
 */
const webhooks: Record<Trigger, string[]> = {
  critical: ['critical'],
  approval: ['approval'],
  escalated: ['escalated'],
  resolved: ['resolved'],
  watch: ['news', 'resolved'],
  reopened: ['news', 'resolved'],
  reminder: ['escalated'],
  digest: ['news', 'escalated'],
  spared: [],
  morning: ['news', 'escalated', 'approval'],
  hand_over: ['news', 'escalated', 'approval'],
  follow_up: ['news', 'escalated'],
  quiet: ['news', 'resolved'],
  owner: ['escalated'],
  taken: [],
  closed: [],
  notice: ['escalated', 'critical', 'news'],
  late: [],
  undelivered: ['escalated', 'critical', 'approval', 'resolved', 'news'],
  duty: ['escalated', 'critical', 'approval', 'resolved', 'news'],
}

const webhookDestination: OutboxDestination = {
  async entriesFor(trx, trigger, told, gone = new Set()) {
    const settings = await readSettings(trx)
    const addressOf = gone.size > 0 ? await readAddresses(trx) : null
    // Sends the page of a reopened incident to the webhook for escalations, because people handle
    // the incident from then on.
    const isHandedOver = trigger === 'reopened' && told?.page
    const name = [...(isHandedOver ? ['escalated'] : []), ...webhooks[trigger]].find(
      (each) => settings.value<string | null>(`webhook.${each}.url`) && !gone.has(addressOf?.(`webhook.${each}`) ?? ''),
    )
    return name === undefined ? [] : [`webhook.${name}`]
  },
}

export const destinations: readonly OutboxDestination[] = [
  webhookDestination,
  slackDestination,
  pushDestination,
  routedDestination,
]

/** Whether any destination may get messages of this trigger. */
export async function hasDestination(trx: Trx, trigger: Trigger): Promise<boolean> {
  for (const destination of destinations) if ((await destination.entriesFor(trx, trigger)).length > 0) return true
  return false
}

/** Calls every destination that follows the logs of incidents. */
export async function notifyDestinations(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  for (const { afterAppend } of destinations) await afterAppend?.(trx, incidentId, event)
}
