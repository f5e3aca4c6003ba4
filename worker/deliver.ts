import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { askAgainDue } from '../db/approvals/ask-again.ts'
import { passOnPending } from '../db/approvals/pass-on.ts'
import { remindPending } from '../db/approvals/reminders.ts'
import { databaseTime } from '../db/clock.ts'
import type { Db, Trx } from '../db/connect.ts'
import { type AddressQueue, dueQueues, leaseQueue, releaseQueue } from '../db/outbox/address-queues.ts'
import {
  type DeliveryResult,
  type DueDelivery,
  finishDelivery,
  maxAttempts,
  postponeDelivery,
} from '../db/outbox/deliveries.ts'
import { destinationByName, isFirstOfThread } from '../db/outbox/destination-rows.ts'
import { tellGivenUp } from '../db/outbox/given-up.ts'
import { forgetDevice, pushKeys, pushPrefix, recordPush, subscriptionById } from '../db/outbox/push-subscriptions.ts'
import { releaseDuePages } from '../db/outbox/release-pages.ts'
import { systemScope } from '../db/scope.ts'
import { readSettings } from '../db/settings.ts'
import { destinationPrefix, isReadable } from '../domain/destination.ts'
import { sha256 } from '../domain/digest.ts'
import {
  type DeliverOptions,
  type Delivery,
  type DeliveryOutcome,
  getLinkPath,
  joinNotifications,
  type MessageSite,
  type Notification,
  readStored,
  type WebhookTarget,
  type WebhookTemplate,
} from '../domain/notification.ts'
import { toPushMessage } from '../domain/push.ts'
import { deliverTo } from '../notify/destination.ts'
import { givenBack, messageGraceMs, unlessStopping } from '../notify/give-back.ts'
import { generatePushKeys, sendPush, toPushSubject } from '../notify/push.ts'
import { deliver } from '../notify/webhook/deliver.ts'

const usualPace = { pollEveryMs: 1_000, remindEveryMs: 5_000, graceMs: messageGraceMs }
/** Most addresses to which messages are sent at once; the next poll serves further addresses. */
const maxQueues = 32
/** Seconds before the second and the third attempt, if the receiver names no time. */
const retryAfterSeconds = [5, 60]
/** Seconds after which a message fails whose receiver repeatedly asked to wait. */
const maxWaitSeconds = 3_600

/**
 * Longest requested wait, in seconds, for which this worker keeps the queue. After a longer wait,
 * the next poll takes the queue.
 */
const maxStaySeconds = 5

type Site = MessageSite & { pushServices: readonly string[] }

/**
 * Drains the outbox until stopped. Each address has one queue, under a lease, so that any number of
 * workers share them; a slow or dead receiver delays only its own queue.
 */
export function startDeliveries(db: Db, log: Logger, site: Site, pace = usualPace): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const { signal } = stopping
  const running = new Map<string, Promise<void>>()
  let remindedAt = 0
  const takeUp = async () => {
    for (const queue of await dueQueues(db)) {
      if (running.size >= maxQueues || running.has(queue.address)) continue
      const drained = drain(db, log, site, queue, { signal, graceMs: pace.graceMs }).catch((error) =>
        log.warn({ err: error }, 'the outbox could not be written'),
      )
      running.set(
        queue.address,
        drained.finally(() => running.delete(queue.address)),
      )
    }
  }
  const polling = (async () => {
    while (!signal.aborted) {
      await releaseDuePages(db).catch((error) => log.warn({ err: error }, 'held pages could not be released'))
      await takeUp().catch((error) => log.warn({ err: error }, 'the outbox could not be read'))
      if (performance.now() - remindedAt > pace.remindEveryMs) {
        remindedAt = performance.now()
        await remindPending(db).catch((error) => log.warn({ err: error }, 'reminders could not be sent'))
        await askAgainDue(db).catch((error) => log.warn({ err: error }, 'approvals could not be requested again'))
        await passOnPending(db).catch((error) =>
          log.warn({ err: error }, 'questions about approvals could not be sent to the next person'),
        )
        await tellGivenUp(db).catch((error) =>
          log.warn({ err: error }, 'the message about undelivered messages could not be sent'),
        )
      }
      await sleep(pace.pollEveryMs, undefined, { signal }).catch(() => {})
    }
    await Promise.all(running.values())
  })()
  return {
    async stop() {
      stopping.abort()
      await polling
    },
  }
}

/** The signal that the process ends, and the milliseconds that a running message then has. */
type Ending = { signal: AbortSignal; graceMs: number }

/**
 * Sends the due messages of an address, one after the other, until none is left or the receiver
 * asks for a long wait.
 */
async function drain(db: Db, log: Logger, site: Site, queue: AddressQueue, end: Ending): Promise<void> {
  const { signal, graceMs } = end
  while (!signal.aborted) {
    const leased = await leaseQueue(db, queue)
    if (!leased) return
    const outcome = await unlessStopping(attempt(db, leased.deliveries, site), signal, graceMs)
    if (outcome === givenBack) {
      await db.transaction().execute(async (trx) => {
        for (const delivery of leased.deliveries) await postponeDelivery(trx, delivery, 0)
        await releaseQueue(trx, leased, 0)
      })
      return
    }
    if (outcome.status !== 'sent') {
      const { id, destination } = leased.deliveries[0] as DueDelivery
      log.warn({ delivery: id, destination, response: outcome.response }, 'delivery failed')
    }
    await db.transaction().execute(async (trx) => {
      for (const delivery of leased.deliveries) await record(trx, delivery, outcome)
      await releaseQueue(trx, leased, outcome.status === 'wait' ? outcome.retryAfterSeconds : 0)
    })
    if (outcome.status !== 'wait') continue
    if (outcome.retryAfterSeconds > maxStaySeconds) return
    await sleep(outcome.retryAfterSeconds * 1_000, undefined, { signal }).catch(() => {})
  }
}

type AttemptResult = Omit<DeliveryResult, 'status'> & { status: DeliveryResult['status'] | 'wait' }

async function record(trx: Trx, delivery: DueDelivery, outcome: AttemptResult): Promise<void> {
  const { status, ...rest } = outcome
  if (status !== 'wait') return await finishDelivery(trx, delivery, { ...rest, status })
  const age = (Date.parse(await databaseTime(trx)) - Date.parse(delivery.createdAt)) / 1_000
  if (age + rest.retryAfterSeconds < maxWaitSeconds)
    return await postponeDelivery(trx, delivery, rest.retryAfterSeconds)
  const response = `${rest.response}; the receiver asked for delays of an hour in all`
  return await finishDelivery(trx, { ...delivery, attempt: maxAttempts }, { ...rest, response, status: 'failed' })
}

async function attempt(db: Db, deliveries: readonly DueDelivery[], site: Site): Promise<AttemptResult> {
  const [first] = deliveries as [DueDelivery]
  if (first.destination.startsWith(pushPrefix)) return await attemptPush(db, first, site)
  const tell = first.destination.startsWith(destinationPrefix)
    ? await toDestination(db, first)
    : await toWebhook(db, first)
  if (!tell) return { ...dropped('the destination is no longer configured'), isUnwanted: true }
  return await attemptTogether(deliveries, site, tell)
}

/** Makes one attempt to send a message to the current address of a destination. */
type Tell = (notification: Notification, options: DeliverOptions) => Promise<Delivery>

async function toWebhook(db: Db, { destination }: DueDelivery): Promise<Tell | null> {
  const settings = await readSettings(db)
  const url = settings.value<string | null>(`${destination}.url`)
  if (!url) return null
  const target: WebhookTarget = {
    url,
    template: settings.value<WebhookTemplate>(`${destination}.template`),
    secret: settings.value<string | null>(`${destination}.secret`),
  }
  return (notification, options) => deliver(target, notification, options)
}

async function toDestination(db: Db, delivery: DueDelivery): Promise<Tell | null> {
  const destination = await destinationByName(systemScope(db), delivery.destination.slice(destinationPrefix.length))
  if (!destination?.enabled) return null
  if (!isReadable(destination)) return async () => unreadable
  const isFirst = await isFirstOfThread(db, delivery)
  return (notification, options) => deliverTo(destination, notification, { ...options, isFirst })
}

const unreadable: Delivery = {
  outcome: 'drop',
  status: null,
  reason: 'the settings of the destination cannot be read: set it again',
  responseSnippet: '',
}

async function attemptTogether(deliveries: readonly DueDelivery[], site: Site, tell: Tell): Promise<AttemptResult> {
  const [delivery] = deliveries as [DueDelivery]
  const told = deliveries.flatMap((each) => readStored(each.notification, each.incidentId, site) ?? [])
  const [first] = told
  if (!first) return dropped('the stored notification cannot be read')
  // Derives the id of a delivery from the ids of its messages, so that each attempt with the same
  // messages has the same id.
  const deliveryId =
    deliveries.length === 1
      ? delivery.messageId
      : `msg_${sha256(deliveries.map(({ messageId }) => messageId).join()).slice(0, 26)}`
  const outcome = await tell(told.length === 1 ? first : together(told, site.publicUrl), {
    deliveryId,
    now: new Date(),
  })
  const said = deliveries.length === 1 ? '' : `sent together with ${deliveries.length - 1} more; `
  return toResult(delivery, outcome, `${said}${outcome.responseSnippet}`)
}

function together(told: readonly Notification[], publicUrl: string): Notification {
  const reason = `${told.length} messages waited more than two minutes for this receiver, and are sent as one message.`
  const joined = joinNotifications(told, 'late', reason)
  return { ...joined, url: `${publicUrl}/${getLinkPath(joined, joined.incident.id)}` }
}

/**
 * Makes one attempt to send a push message to a browser. Deletes the subscription if the push
 * service reports that the subscription has ended.
 */
async function attemptPush(db: Db, delivery: DueDelivery, site: Site): Promise<AttemptResult> {
  const id = delivery.destination.slice(pushPrefix.length)
  const subscription = await subscriptionById(db, id)
  if (!subscription) return { ...dropped('this browser is no longer subscribed'), isUnwanted: true }
  const told = readStored(delivery.notification, delivery.incidentId, site)
  const message = told && toPushMessage(told)
  if (!told?.approval || !message) return dropped('the stored notification cannot be read')
  const keys = await pushKeys(db, generatePushKeys)
  const expirySeconds = Math.floor((Date.parse(told.approval.expiresAt) - Date.now()) / 1_000)
  const outcome = await sendPush(subscription, message, {
    ...keys,
    expirySeconds,
    subject: toPushSubject(site.publicUrl),
    services: site.pushServices,
  })
  if (outcome.outcome === 'sent') await recordPush(db, id)
  if (outcome.isGone) await forgetDevice(db, id)
  return { ...toResult(delivery, outcome, ''), isUnwanted: outcome.isGone || expirySeconds <= 0 }
}

function toResult(delivery: DueDelivery, outcome: DeliveryOutcome, said: string): AttemptResult {
  const { status: responseStatus } = outcome
  if (outcome.outcome === 'sent') return { status: 'sent', responseStatus, response: said, retryAfterSeconds: 0 }
  const response = `${outcome.reason}${said ? `: ${said}` : ''}`
  if (outcome.outcome === 'drop') return { status: 'dropped', responseStatus, response, retryAfterSeconds: 0 }
  const unnamed = retryAfterSeconds[Math.min(delivery.attempt, maxAttempts) - 1] ?? 60
  const seconds = outcome.afterMs === null ? unnamed : Math.min(maxWaitSeconds, outcome.afterMs / 1000)
  const status = outcome.outcome === 'wait' ? 'wait' : 'failed'
  return { status, responseStatus, response, retryAfterSeconds: seconds }
}

function dropped(response: string): DeliveryResult {
  return { status: 'dropped', responseStatus: null, response, retryAfterSeconds: 0 }
}
