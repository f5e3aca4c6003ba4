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
