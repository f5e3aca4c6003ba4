import type { Notification } from '../domain/notification.ts'

export type RenderOptions = {
  /** Stays the same over all attempts of one delivery, so that a receiver can tell a repeat. */
  deliveryId: string
  /** When this attempt is sent. */
  now: Date
  /** `whsec_…`, or null. */
  secret: string | null
}

export type Rendered = { headers: Record<string, string>; body: string }

/** A destination's words for a notification. Pure; throws only for a secret that is none. */
export type Render = (notification: Notification, options: RenderOptions) => Rendered

/**
 * A stranger's text for a receiver's screen: nothing in it moves a terminal, turns the reading direction or hides; at most
 * `maxChars` code points.
 */
export function inertText(text: string, maxChars: number): string {
  const plain = text
    .slice(0, maxChars * 4)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/[\u061C\u200B\u200E\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/gu, '\uFFFD')
    .trim()
  const chars = [...plain]
  const isCut = chars.length > maxChars || text.length > maxChars * 4
  return isCut ? `${chars.slice(0, maxChars - 1).join('')}…` : plain
}
