import { isIPv6 } from 'node:net'
import { countAttempt, type Limit } from '../db/attempts.ts'
import { recordAudit } from '../db/audit.ts'
import type { Db } from '../db/connect.ts'
import type { Principal } from '../domain/operator.ts'
import { addressOf } from './address.ts'
import type { Context } from './hono.ts'
import { Problem } from './problem.ts'

/** Enough for a person with the wrong clipboard and for a worker with an old token until somebody looks. */
export const failedAuthentications: Limit = { attempts: 20, seconds: 300 }
/** A decision takes two. Short, because an approval that waits ten minutes must not be missed for a limit. */
const decisionAttempts: Limit = { attempts: 20, seconds: 60 }

/**
 * Counts a token or a code that was no good, and answers what to say when there were too many from this network. Good ones
 * are never counted or refused: behind a proxy all people are one address, and one of them must not lock out the others.
 */
export async function afterFailure(db: Db, c: Context): Promise<Problem | null> {
  const network = networkOf(addressOf(c))
  const counted = await countAttempt(db, `authentication:${network}`, failedAuthentications)
  if (!counted.over) return null
  if (counted.first) {
    const detail = `More than ${failedAuthentications.attempts} tokens or codes that were no good in ${failedAuthentications.seconds / 60} minutes`
    await recordAudit(db, {
      ...{ who: 'unknown', what: 'security.too_many_attempts', subject: network, detail, address: addressOf(c) },
    })
  }
  // Alertmanager drops what a 429 answers and repeats what a 503 does: a token that is mended in time loses no alert.
  const status = c.req.path.startsWith('/api/v1/ingest/') ? 503 : 429
  return tooMany(status, 'Too many tokens that were no good came from this address.', counted.retryAfterSeconds)
}

/** Counts a try to mint or use a decision token, whatever comes of it. */
export async function limitDecisions(db: Db, c: Context, principal: Principal, approvalId: string): Promise<void> {
  const subject = `decision:${principal.operatorId ?? principal.tokenId}:${approvalId}`
  const counted = await countAttempt(db, subject, decisionAttempts)
  if (!counted.over) return
  if (counted.first) {
    const detail = `More than ${decisionAttempts.attempts} tries to decide in ${decisionAttempts.seconds} seconds`
    await recordAudit(db, {
      ...{ who: principal.name, what: 'security.too_many_attempts', subject: approvalId, detail },
      address: addressOf(c),
    })
  }
  throw tooMany(429, `${principal.name} tried to decide this too often.`, counted.retryAfterSeconds)
}

function tooMany(status: 429 | 503, detail: string, seconds: number): Problem {
  const said = `${detail} Try again in ${seconds} seconds.`
  return new Problem(status, 'TOO_MANY_ATTEMPTS', said, { headers: { 'retry-after': String(seconds) } })
}

/** Who owns one address of version 6 owns the 2^64 around it. */
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
