import { createHmac, timingSafeEqual } from 'node:crypto'

/** How far Slack's clock and ours may be apart, either way: what is older may be a replay, what is newer was made for one. */
const toleranceSeconds = 300

/** `v0=` and the HMAC of Slack over version, time and the body as it came. */
export function signatureOf(secret: string, timestamp: string, body: Uint8Array | string): string {
  return `v0=${createHmac('sha256', secret).update(`v0:${timestamp}:`).update(body).digest('hex')}`
}

export type Signed = { timestamp: string | undefined; signature: string | undefined; body: Uint8Array }

/** `stale`: really Slack's, but not of these minutes. Compares in constant time, before anything in the body is read. */
export function judgeSignature(secret: string, signed: Signed, nowMs: number): 'good' | 'forged' | 'stale' {
  const { timestamp, signature, body } = signed
  if (!timestamp || !signature || !/^\d{1,12}$/.test(timestamp)) return 'forged'
  const expected = Buffer.from(signatureOf(secret, timestamp, body))
  const given = Buffer.from(signature)
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return 'forged'
  return Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSeconds ? 'stale' : 'good'
}

type Asked = { id: string; actionDigest: string }

/**
 * What a button carries: which approval, and a nonce that only we can make for it and the action that was shown. No
 * authority: the person who presses is looked up, and what they may is judged, when it comes back.
 */
export function buttonValue(secret: string, approval: Asked): string {
  return `${approval.id}.${nonceOf(secret, approval)}`
}

/** The approval that a button names; null when its form shows that it is not ours. */
export function approvalOfButton(value: string): string | null {
  return /^(apr_[0-9a-z]{1,60})\.[A-Za-z0-9_-]{43}$/.exec(value)?.[1] ?? null
}

/** Did we make this button, for this approval and this very action? */
export function isButtonOf(secret: string, approval: Asked, value: string): boolean {
  const [expected, given] = [Buffer.from(buttonValue(secret, approval)), Buffer.from(value)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}

function nonceOf(secret: string, { id, actionDigest }: Asked): string {
  return createHmac('sha256', secret).update(`nightshift button\n${id}\n${actionDigest}`).digest('base64url')
}

/** What the buttons of an incident carry: which one, and a nonce that only we can make for it and what the button does. */
export function incidentButton(secret: string, incidentId: string, action: IncidentPress): string {
  const nonce = createHmac('sha256', secret).update(`nightshift ${action}\n${incidentId}`).digest('base64url')
  return `${incidentId}.${nonce}`
}

export type IncidentPress = 'take' | 'give_back'

/** The incident that a button names; null when its form is not ours. */
export function incidentOfButton(value: string): string | null {
  return /^(inc_[0-9a-z]{1,60})\.[A-Za-z0-9_-]{43}$/.exec(value)?.[1] ?? null
}

/** Did we make this button, for this incident and for this? */
export function isIncidentButton(secret: string, incidentId: string, action: IncidentPress, value: string): boolean {
  const [expected, given] = [Buffer.from(incidentButton(secret, incidentId, action)), Buffer.from(value)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
