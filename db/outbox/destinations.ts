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
 * Channels that notify people of appended rows: webhooks here, Slack, browsers and destinations in
 * files beside it.
 */

/** A question that says who may answer; `of`: the person whose turn it is, by the site's list. */
export type AskedOf = Pick<DecisionSubject, 'risk' | 'targets'> & {
  of?: string | undefined
  dryRun?: { details: Record<string, unknown> } | null
}

/** What there is to tell. */
type ToldEntry = RoutedNews & { incidentId: string; asked?: AskedOf | undefined }

/**
 * A channel that notifies people. Log and outbox know this type alone: a new destination is a file
 * with one of these and a line in `destinations`.
 */
export type OutboxDestination = {
  /**
   * Names of its outbox entries for a trigger; none where it is off or not interested. Without
   * `told`: those that may be. `gone`: addresses that cannot be told (`readAddresses`).
   */
  entriesFor(trx: Trx, trigger: Trigger, told?: ToldEntry, gone?: ReadonlySet<string>): Promise<string[]>
  /** Called once before its entries are stored. */
  prepare?(trx: Trx, incidentId: string): Promise<void>
  /** Called after each row of a log, in its transaction: makes due what the destination shows. */
  afterAppend?(trx: Trx, incidentId: string, event: NewEvent): Promise<void>
}

/** Places for each kind of message: the first with an address. Without a question it is news. */
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
    // Somebody is to be woken by an incident that is back: it is handed to people, and no news.
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

/** Does anybody want to hear of this? */
export async function hasDestination(trx: Trx, trigger: Trigger): Promise<boolean> {
  for (const destination of destinations) if ((await destination.entriesFor(trx, trigger)).length > 0) return true
  return false
}

/** Calls every destination that follows the log. */
export async function notifyDestinations(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  for (const { afterAppend } of destinations) await afterAppend?.(trx, incidentId, event)
}
