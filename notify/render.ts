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

/** A destination's words for a notification. Pure; throws only for a secret that cannot be one. */
export type Render = (notification: Notification, options: RenderOptions) => Rendered
