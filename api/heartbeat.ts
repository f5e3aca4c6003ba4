import { request } from '../clients/http.ts'
import { tellLostDuties } from '../db/outbox/lost-duties.ts'
import { systemScope } from '../db/scope.ts'
import { dutyOf } from '../domain/duty.ts'
import type { StatusPart } from '../domain/status.ts'
import type { ApiDeps } from './deps.ts'
import { lookAtParts, type PartFacts, partsOf } from './parts.ts'

const beatEveryMs = 60_000
/** Milliseconds for the check of all parts, and for the response of the heartbeat's receiver. */
const lookWithinMs = 20_000
const answersWithinMs = 10_000

/**
 * Lists the vital parts that failed. An undelivered message counts only if no other destination got
 * its text.
 */
export function lostDuties(facts: PartFacts): StatusPart[] {
  const isTold = facts.idle === null && facts.untold === 0
  return partsOf(facts).filter(
    ({ name, status }) => status === 'failed' && dutyOf(name)?.isVital && !(name === 'messages' && isTold),
  )
}

/**
 * Checks all parts once a minute, and notifies every destination of a failure. During a failure the
 * heartbeat stops, because an alarm about Nightshift must not depend on Nightshift. The missing
 * heartbeat is the alarm: for a dead process, a failed part, a failed network. The response of the
 * heartbeat's receiver is logged. `url` is null if there is no receiver.
 */
export function startHeartbeat(deps: ApiDeps, url: string | null, everyMs = beatEveryMs): () => void {
  let running = false
  const beat = async () => {
    const facts = await withinTime(lookAtParts(systemScope(deps.db), deps), lookWithinMs)
    const lost = lostDuties(facts)
    await tellLostDuties(deps.db, lost)
    if (lost.length > 0) {
      deps.log.error(
        { lost: lost.map(({ name, detail }) => `${name}: ${detail}`) },
        'no heartbeat is sent, because a part of Nightshift has failed',
      )
      return
    }
    if (url === null) return
    const { status } = await request({
      method: 'GET',
      url,
      headers: { 'user-agent': 'nightshift' },
      timeoutMs: answersWithinMs,
      maxBytes: 16_000,
      overflow: 'cut',
      allow: 'private',
      signal: deps.closing,
    })
    if (status >= 300)
      deps.log.error({ status }, 'the heartbeat was refused: HEARTBEAT_URL or the server behind it is wrong')
  }
  const timer = setInterval(() => {
    if (running || deps.closing.aborted) return
    running = true
    void beat()
      .catch((error) => deps.log.error({ err: error }, 'no heartbeat'))
      .finally(() => {
        running = false
      })
  }, everyMs)
  return () => clearInterval(timer)
}

/** Counts a database that hangs as failed, so that the heartbeat does not wait for it. */
async function withinTime<T>(work: Promise<T>, withinMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the parts did not report their state in time')), withinMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
