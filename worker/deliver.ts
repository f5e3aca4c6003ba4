import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { remindPending } from '../db/approvals/reminders.ts'
import type { Db } from '../db/connect.ts'
import {
  type DeliveryResult,
  type DueDelivery,
  finishDelivery,
  leaseDeliveries,
  maxAttempts,
} from '../db/outbox/deliveries.ts'
import { forgetDevice, pushKeys, pushPrefix, recordPush, subscriptionById } from '../db/outbox/push-subscriptions.ts'
import { readSettings } from '../db/settings.ts'
import {
  type DeliveryOutcome,
  type Destination,
  getLinkPath,
  notification,
  type WebhookTemplate,
} from '../domain/notification.ts'
import { toPushMessage } from '../domain/push.ts'
import { generatePushKeys, sendPush, toPushSubject } from '../notify/push.ts'
import { deliver } from '../notify/webhook/deliver.ts'

const pollEveryMs = 1_000
const batch = 10
const remindEveryMs = 5_000
/** Before the second and the third attempt, where the receiver named no time. */
const retryAfterSeconds = [5, 60]

type Site = { publicUrl: string; pushServices: readonly string[] }

/**
 * Drains the outbox until stopped. Each delivery is taken under a lease, so that any number of workers share it; a dead
 * receiver costs its attempts and nothing else.
 */
export function startDeliveries(db: Db, log: Logger, site: Site): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let remindedAt = 0
  const draining = (async () => {
    while (!stopping.signal.aborted) {
      const sent = await drain(db, log, site).catch((error) => {
        log.warn({ err: error }, 'the outbox could not be read')
        return 0
      })
      if (performance.now() - remindedAt > remindEveryMs) {
        remindedAt = performance.now()
        await remindPending(db).catch((error) => log.warn({ err: error }, 'nobody could be reminded'))
      }
      if (sent === 0) await sleep(pollEveryMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await draining
    },
  }
}

async function drain(db: Db, log: Logger, site: Site): Promise<number> {
  const due = await leaseDeliveries(db, batch)
  await Promise.all(
    due.map(async (delivery) => {
      const isPush = delivery.destination.startsWith(pushPrefix)
      const result = await (isPush ? attemptPush : attemptWebhook)(db, delivery, site)
      if (result.status !== 'sent') {
        log.warn(
          { delivery: delivery.id, destination: delivery.destination, response: result.response },
          'delivery failed',
        )
      }
      await db.transaction().execute((trx) => finishDelivery(trx, delivery, result))
    }),
  )
  return due.length
}

async function attemptWebhook(db: Db, delivery: DueDelivery, { publicUrl }: Site): Promise<DeliveryResult> {
  const settings = await readSettings(db)
  const url = settings.value<string | null>(`${delivery.destination}.url`)
  if (!url) return dropped('its destination is configured no more')
  const destination: Destination = {
    url,
    template: settings.value<WebhookTemplate>(`${delivery.destination}.template`),
    secret: settings.value<string | null>(`${delivery.destination}.secret`),
  }
  const told = readNotification(delivery, publicUrl)
  if (!told) return dropped('its stored notification cannot be read')
  const outcome = await deliver(destination, told, { deliveryId: delivery.messageId, now: new Date() })
  return toResult(delivery, outcome, outcome.responseSnippet)
}

/** The same for a browser: one that is subscribed no more is forgotten. */
async function attemptPush(db: Db, delivery: DueDelivery, site: Site): Promise<DeliveryResult> {
  const id = delivery.destination.slice(pushPrefix.length)
  const subscription = await subscriptionById(db, id)
  if (!subscription) return dropped('this browser is subscribed no more')
  const told = readNotification(delivery, site.publicUrl)
  const message = told && toPushMessage(told)
  if (!told?.approval || !message) return dropped('its stored notification cannot be read')
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
  return toResult(delivery, outcome, '')
}

function readNotification(delivery: DueDelivery, publicUrl: string) {
  const parsed = notification.safeParse({
    ...(delivery.notification as object),
    url: `${publicUrl}/${getLinkPath(delivery.notification, delivery.incidentId)}`,
  })
  return parsed.success ? parsed.data : null
}

function toResult(delivery: DueDelivery, outcome: DeliveryOutcome, said: string): DeliveryResult {
  if (outcome.outcome === 'sent') {
    return { status: 'sent', responseStatus: outcome.status, response: said, retryAfterSeconds: 0 }
  }
  const response = `${outcome.reason}${said ? `: ${said}` : ''}`
  if (outcome.outcome === 'drop') {
    return { status: 'dropped', responseStatus: outcome.status, response, retryAfterSeconds: 0 }
  }
  const wait = retryAfterSeconds[Math.min(delivery.attempt, maxAttempts) - 1] ?? 60
  const asked = outcome.afterMs === null ? wait : Math.min(600, Math.ceil(outcome.afterMs / 1000))
  return { status: 'failed', responseStatus: outcome.status, response, retryAfterSeconds: asked }
}

function dropped(response: string): DeliveryResult {
  return { status: 'dropped', responseStatus: null, response, retryAfterSeconds: 0 }
}
