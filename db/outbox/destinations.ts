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

/** The channels that notify people of appended rows: webhooks here, Slack, browsers and what people set up in files beside it. */

/** What is to be decided, which says who may answer; `of`: the person whose turn it is, by the site's list. */
export type AskedOf = Pick<DecisionSubject, 'risk' | 'targets'> & {
  of?: string | undefined
  dryRun?: { details: Record<string, unknown> } | null
}

/** What there is to tell. */
type ToldEntry = RoutedNews & { incidentId: string; asked?: AskedOf | undefined }

/**
 * A channel that notifies people. The log and the outbox know this type alone: a new destination is a file with one of these and
 * a line in `destinations`.
 */
export type OutboxDestination = {
  /**
   * The names of its entries in the outbox for a trigger; none where it is off or does not want to know. Without `told` those that may
   * want to know. `gone`: addresses that cannot be told (`readAddresses`).
   */
  entriesFor(trx: Trx, trigger: Trigger, told?: ToldEntry, gone?: ReadonlySet<string>): Promise<string[]>
  /** Called once before its entries are stored. */
  prepare?(trx: Trx, incidentId: string): Promise<void>
  /** Called after each row of a log, in the row's transaction: makes due what the destination shows of it. */
  afterAppend?(trx: Trx, incidentId: string, event: NewEvent): Promise<void>
}

/** Where each kind of message goes: the first of these that has an address. What asks nothing of anybody is news. */
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
