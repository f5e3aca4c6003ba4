import { createECDH } from 'node:crypto'
import webPush from 'web-push'
import { HttpError, request, retryAfterMs } from '../clients/http.ts'
import { type DeliveryOutcome, waitOrRetry } from '../domain/notification.ts'
import { isPushService, type PushMessage } from '../domain/push.ts'

type PushSender = {
  publicKey: string
  privateKey: string
  /** The contact for push services (RFC 8292): `mailto:` or an https address. */
  subject: string
  services: readonly string[]
}

type Subscription = { endpoint: string; p256dh: string; auth: string }

/** Generates a key pair that signs messages to push services (VAPID, RFC 8292). */
export function generatePushKeys(): { publicKey: string; privateKey: string } {
  return webPush.generateVAPIDKeys()
}

/** Whether a browser's key is a point on the curve P-256, so that a message can be encrypted. */
export function isPushKey(p256dh: string): boolean {
  try {
    const own = createECDH('prime256v1')
    own.generateKeys()
    own.computeSecret(Buffer.from(p256dh, 'base64url'))
    return true
  } catch {
    return false
  }
}

/**
 * Returns the contact for push services: the public address if it is https, otherwise a mailbox at
 * the host of the public address.
 */
export function toPushSubject(publicUrl: string): string {
  const { protocol, origin, hostname } = new URL(publicUrl)
  return protocol === 'https:' && hostname !== 'localhost'
    ? origin
    : `mailto:nightshift@${hostname.replace(/[[\]]/g, '')}`
}

/**
 * Sends one message to one browser, encrypted for only that browser (RFC 8291) and signed. Never
 * throws. `isGone`: true if the subscription has ended (404, 410) or its push service is not
 * allowed. The reason never contains the address, which is a credential.
 */
export async function sendPush(
  subscription: Subscription,
  message: PushMessage,
  { expirySeconds, ...sender }: PushSender & { expirySeconds: number },
): Promise<DeliveryOutcome & { isGone: boolean }> {
  const drop = (reason: string, status: number | null = null, isGone = false) => ({
    outcome: 'drop' as const,
    status,
    reason,
    isGone,
  })
  if (expirySeconds <= 0) return drop('the approval expired before the message was sent')
  if (!isPushService(subscription.endpoint, sender.services))
    return drop("PUSH_SERVICES does not list the browser's push service", null, true)
  try {
    const { endpoint, p256dh, auth } = subscription
    const details = webPush.generateRequestDetails({ endpoint, keys: { p256dh, auth } }, JSON.stringify(message), {
      vapidDetails: { subject: sender.subject, publicKey: sender.publicKey, privateKey: sender.privateKey },
      TTL: expirySeconds,
      urgency: 'high',
      // Gives a reminder the topic of its approval, so that a phone that was off for both messages
      // shows only the reminder. A topic has at most 32 characters.
      topic: message.tag.slice(-32).replace(/[^A-Za-z0-9_-]/g, '-'),
      contentEncoding: 'aes128gcm',
    })
    const { status, headers } = await request({
      method: 'POST',
      url: details.endpoint,
      headers: Object.fromEntries(Object.entries(details.headers).map(([name, value]) => [name, String(value)])),
      body: details.body ?? '',
      timeoutMs: 20_000,
      maxBytes: 16_000,
      overflow: 'cut',
      allow: 'private',
    })
    if (status >= 200 && status < 300) return { outcome: 'sent', status, isGone: false }
    const reason = `the push service answered ${status}`
    if (status === 404 || status === 410) return drop(`${reason}: the browser has ended its subscription`, status, true)
    const again = waitOrRetry(status, reason, retryAfterMs(headers, Date.now()))
    return again ? { ...again, isGone: false } : drop(reason, status)
  } catch (error) {
    if (!(error instanceof HttpError)) return drop('the message could not be encrypted for this browser')
    if (!error.retryable) return drop('the push service cannot be used')
    return {
      outcome: 'retry',
      status: null,
      reason: 'the push service cannot be reached',
      afterMs: null,
      isGone: false,
    }
  }
}
