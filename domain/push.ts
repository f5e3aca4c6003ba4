import { z } from 'zod'
import { formatAlsoAsked } from './format-approval.ts'
import { inertText } from './inert-text.ts'
import type { Notification } from './notification.ts'

/** Services that deliver web pushes to browsers: Chrome and Edge, Firefox, Safari, Windows. */
export const knownPushServices = [
  'fcm.googleapis.com',
  'jmt17.google.com',
  '*.push.services.mozilla.com',
  '*.push.apple.com',
  '*.notify.windows.com',
]

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const service = new RegExp(`^(?:(?:\\*\\.)?${label}(?:\\.${label})+|https?://${label}(?:\\.${label})*(?::\\d{1,5})?)$`)

/**
 * Parses `PUSH_SERVICES`: hosts, `*.` before a host for all of its subdomains, or the origin of a
 * self-hosted push service. Null if an entry is neither a host nor an origin.
 */
export function parsePushServices(text: string): string[] | null {
  const names = text
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter(Boolean)
  return names.every((name) => service.test(name)) ? names : null
}

/**
 * Whether an endpoint may be used: https on the default port of a known service, or a configured
 * origin. The endpoint must be checked, because it comes from a browser, so a person could give any
 * address.
 */
export function isPushService(endpoint: string, services: readonly string[]): boolean {
  const url = URL.parse(endpoint)
  if (url === null || url.username !== '' || url.password !== '') return false
  return services.some((name) => {
    if (name.includes('://')) return url.origin === name
    if (url.protocol !== 'https:' || url.port !== '') return false
    return name.startsWith('*.') ? url.hostname.endsWith(name.slice(1)) : url.hostname === name
  })
}

/**
 * The subscription of a browser (Push API, `PushSubscription.toJSON()`). `p256dh`: an uncompressed
 * point of P-256. `auth`: 16 bytes.
 */
export const newSubscription = z.strictObject({
  endpoint: z.url({ protocol: /^https?$/ }).max(1_000),
  keys: z.strictObject({
    p256dh: z.string().regex(/^B[A-Za-z0-9_-]{86}$/),
    auth: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
  }),
})
export type NewSubscription = z.infer<typeof newSubscription>

/** A browser that gets messages, as the browser's owner sees it, without its endpoint. */
export const pushDevice = z.object({
  id: z.string(),
  name: z.string(),
  createdAt: z.string(),
  lastSentAt: z.string().nullable(),
})
export type PushDevice = z.infer<typeof pushDevice>

/**
 * A notification in a person's browser, read by `web/public/push-worker.js`. Untrusted texts are
 * escaped and short.
 */
export type PushMessage = { title: string; body: string; path: string; tag: string }

const titles = ['Approval needed', 'Approval still needed', 'Approval expires soon'] as const

/**
 * Converts a notification that asks for an approval; null for all other notifications, which are
 * not sent to browsers.
 */
export function toPushMessage({ approval, incident }: Notification): PushMessage | null {
  if (!approval) return null
  return {
    title: `${titles[approval.reminder] ?? titles[0]}: ${inertText(incident.title, 100)}`,
    body: `${inertText(approval.summary, 200)} (${approval.risk} risk)${formatAlsoAsked(approval.alsoAsked)}`,
    path: `/approvals/${approval.id}`,
    tag: approval.id,
  }
}
