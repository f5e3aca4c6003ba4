import { isIPv6 } from 'node:net'
import { countAttempt, type RateLimit } from '../../db/access/rate-limits.ts'
import type { Db } from '../../db/connect.ts'
import { recordAudit } from '../../db/log/audit.ts'
import type { Principal } from '../../domain/permissions.ts'
import { type Context, getCallerAddress } from '../deps.ts'
import { Problem } from './problem.ts'

/**
 * The limit of failed sign-ins. It allows for typing errors, and for a worker whose token has
 * expired.
 */
export const failedAuthentications: RateLimit = { attempts: 20, seconds: 300 }

/**
 * The limit of decisions. A decision takes two attempts. The period is short, because an approval
 * may be valid for only ten minutes.
 */
const decisionAttempts: RateLimit = { attempts: 20, seconds: 60 }

/**
 * Counts a wrong token or code. Returns a problem after too many wrong ones from one network. Valid
 * tokens and codes are never counted or refused: behind a proxy all clients share one address, and
 * one client must not lock out the others.
 */
export async function afterFailure(db: Db, c: Context): Promise<Problem | null> {
  const network = networkOf(getCallerAddress(c))
  const counted = await countAttempt(db, `authentication:${network}`, failedAuthentications)
  if (!counted.over) return null
  if (counted.first) {
    const detail = `More than ${failedAuthentications.attempts} invalid tokens or codes in ${failedAuthentications.seconds / 60} minutes`
    await recordAudit(db, {
      who: 'unknown',
      what: 'security.too_many_attempts',
      subject: network,
      detail,
      address: getCallerAddress(c),
    })
  }
  // Uses 503 for alerts: Alertmanager drops an alert after a 429 and repeats it after a 503. No
  // alert is lost if a new token is set in time.
  const status = c.req.path.startsWith('/api/v1/ingest/') ? 503 : 429
  return tooMany(status, 'Too many invalid tokens came from this address.', counted.retryAfterSeconds)
}

/** Counts an attempt to create or use a decision token, successful or not. */
export async function limitDecisions(db: Db, c: Context, principal: Principal, approvalId: string): Promise<void> {
  const subject = `decision:${principal.operatorId ?? principal.tokenId}:${approvalId}`
  const counted = await countAttempt(db, subject, decisionAttempts)
  if (!counted.over) return
  if (counted.first) {
    const detail = `More than ${decisionAttempts.attempts} attempts to decide in ${decisionAttempts.seconds} seconds`
    await recordAudit(db, {
      who: principal.name,
      what: 'security.too_many_attempts',
      subject: approvalId,
      detail,
      address: getCallerAddress(c),
    })
  }
  throw tooMany(
    429,
    `${principal.name} made too many attempts to decide about this approval.`,
    counted.retryAfterSeconds,
  )
}

/**
 * The limit of test messages, which are sent to receivers outside: enough to try a template, too
 * few to annoy a receiver.
 */
const webhookTests: RateLimit = { attempts: 10, seconds: 60 }

/** Counts test messages to webhooks. */
export async function limitWebhookTests(db: Db): Promise<void> {
  const counted = await countAttempt(db, 'webhook-test', webhookTests)
  if (!counted.over) return
  const detail = `More than ${webhookTests.attempts} test messages were sent in a minute.`
  throw tooMany(429, detail, counted.retryAfterSeconds)
}

function tooMany(status: 429 | 503, detail: string, seconds: number): Problem {
  const said = `${detail} Try again in ${seconds} seconds.`
  return new Problem(status, 'TOO_MANY_ATTEMPTS', said, { headers: { 'retry-after': String(seconds) } })
}

/**
 * Returns the network of an address. For IPv6 this is the /64, because the owner of a /64 has 2^64
 * addresses.
 */
export function networkOf(address: string): string {
  const [, mapped] = /^::ffff:(\d+(?:\.\d+){3})$/i.exec(address) ?? []
  if (mapped) return mapped
  if (!isIPv6(address)) return address
  const [head = '', tail] = (address.split('%')[0] as string).toLowerCase().split('::')
  const groups = head.split(':').filter(Boolean)
  const last = tail?.split(':').filter(Boolean) ?? []
  while (groups.length + last.length < 8) groups.push('0')
  const four = [...groups, ...last].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${four.join(':')}::/64`
}
