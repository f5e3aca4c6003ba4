import type { NewEvent } from '../../domain/event.ts'
import type { Notification } from '../../domain/notification.ts'
import type { Trx } from '../connect.ts'
import { readSettings } from '../settings.ts'
import { readAddresses } from './address-queues.ts'
import { pushDestination } from './push-subscriptions.ts'
import { slackDestination } from './slack-thread-updates.ts'

/** The channels that notify people of appended rows: webhooks here, Slack and browsers in files beside it. */

export type Trigger = Notification['trigger']

/** What decides who may answer a question. */
type AskedAbout = { risk: string; incidentType: string }

/**
 * A channel that notifies people. The log and the outbox know this type alone: a new destination is a file with one of these and
 * a line in `destinations`.
 */
export type OutboxDestination = {
  /**
   * The names of its entries in the outbox for a trigger; none where it is off or does not want to know. `about`: what is asked, of an
   * approval. `gone`: addresses that cannot be told (`readAddresses`).
   */
  entriesFor(trx: Trx, trigger: Trigger, about?: AskedAbout, gone?: ReadonlySet<string>): Promise<string[]>
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
  late: [],
  undelivered: ['escalated', 'critical', 'approval', 'resolved'],
  duty: ['escalated', 'critical', 'approval', 'resolved'],
}

const webhookDestination: OutboxDestination = {
  async entriesFor(trx, trigger, _about, gone = new Set()) {
    const settings = await readSettings(trx)
    const addressOf = gone.size > 0 ? await readAddresses(trx) : null
    const name = webhooks[trigger].find(
      (each) => settings.value<string | null>(`webhook.${each}.url`) && !gone.has(addressOf?.(`webhook.${each}`) ?? ''),
    )
    return name === undefined ? [] : [`webhook.${name}`]
  },
}

export const destinations: readonly OutboxDestination[] = [webhookDestination, slackDestination, pushDestination]

/** Calls every destination that follows the log. */
export async function notifyDestinations(trx: Trx, incidentId: string, event: NewEvent): Promise<void> {
  for (const { afterAppend } of destinations) await afterAppend?.(trx, incidentId, event)
}
