import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { remindPending } from '../db/approvals/ask.ts'
import type { Db } from '../db/connect.ts'
import {
  type DeliveryResult,
  type DueDelivery,
  finishDelivery,
  leaseDeliveries,
  maximumAttempts,
} from '../db/deliveries.ts'
import { readSettings } from '../db/settings.ts'
import { type Destination, getLinkPath, notification, type WebhookTemplate } from '../domain/escalation.ts'
import { deliver } from '../notify/deliver.ts'

const pollEveryMs = 1_000
const batch = 10
const remindEveryMs = 5_000
/** Before the second and the third attempt, where the receiver named no time. */
const retryAfterSeconds = [5, 60]

/**
 * Drains the outbox until stopped. Each delivery is taken under a lease, so that any number of workers share it; a dead
 * receiver costs its attempts and nothing else.
 */
export function startDeliveries(db: Db, log: Logger, publicUrl: string): { stop(): Promise<void> } {
  const stopping = new AbortController()
  let remindedAt = 0
  const draining = (async () => {
    while (!stopping.signal.aborted) {
      const sent = await drain(db, log, publicUrl).catch((error) => {
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

async function drain(db: Db, log: Logger, publicUrl: string): Promise<number> {
  const due = await leaseDeliveries(db, batch)
  await Promise.all(
    due.map(async (delivery) => {
      const result = await attempt(db, delivery, publicUrl)
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

async function attempt(db: Db, delivery: DueDelivery, publicUrl: string): Promise<DeliveryResult> {
  const settings = await readSettings(db)
  const url = settings.value<string | null>(`${delivery.destination}.url`)
  if (!url) return dropped('its destination is configured no more')
  const destination: Destination = {
    url,
    template: settings.value<WebhookTemplate>(`${delivery.destination}.template`),
    secret: settings.value<string | null>(`${delivery.destination}.secret`),
  }
  const parsed = notification.safeParse({
    ...(delivery.notification as object),
    url: `${publicUrl}/${getLinkPath(delivery.notification, delivery.incidentId)}`,
  })
  if (!parsed.success) return dropped('its stored notification cannot be read')
  const outcome = await deliver(destination, parsed.data, { deliveryId: delivery.messageId, now: new Date() })
  if (outcome.outcome === 'sent') {
    return { status: 'sent', responseStatus: outcome.status, response: outcome.responseSnippet, retryAfterSeconds: 0 }
  }
  const response = `${outcome.reason}${outcome.responseSnippet ? `: ${outcome.responseSnippet}` : ''}`
  if (outcome.outcome === 'drop') {
    return { status: 'dropped', responseStatus: outcome.status, response, retryAfterSeconds: 0 }
  }
  const wait = retryAfterSeconds[Math.min(delivery.attempt, maximumAttempts) - 1] ?? 60
  const asked = outcome.afterMs === null ? wait : Math.min(600, Math.ceil(outcome.afterMs / 1000))
  return { status: 'failed', responseStatus: outcome.status, response, retryAfterSeconds: asked }
}

function dropped(response: string): DeliveryResult {
  return { status: 'dropped', responseStatus: null, response, retryAfterSeconds: 0 }
}
