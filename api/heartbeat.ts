import { request } from '../clients/http.ts'
import { countUntold } from '../db/outbox/given-up.ts'
import { systemScope } from '../db/scope.ts'
import type { StatusPart } from '../domain/status.ts'
import type { ApiDeps } from './deps.ts'
import { readStatus } from './routes/status.ts'

const beatEveryMs = 60_000
/** A look at all parts, and then the receiver's answer. */
const lookWithinMs = 20_000
const answersWithinMs = 10_000

/** Investigations are poorer without runbooks. A message that another way has told of reached somebody: it is counted apart. */
const noDuties = new Set(['knowledge', 'messages'])

/** Duties that are lost: while there is one, nothing is sent, and the check outside sounds its alarm. `untold`: messages that reached nobody. */
export function lostDuties(parts: readonly StatusPart[], untold: number): StatusPart[] {
  return parts.filter(
    ({ name, status }) => status === 'failed' && (!noDuties.has(name) || (name === 'messages' && untold > 0)),
  )
}

/**
 * Tells an address outside once a minute that all duties are done, so that an alarm about Nightshift does not travel through Nightshift.
 * Silence is the alarm: of a process that died, of a duty that is lost, of a network that is gone. What the receiver answers is logged.
 */
export function startHeartbeat(deps: ApiDeps, url: string, everyMs = beatEveryMs): () => void {
  let running = false
  const beat = async () => {
    const looks = Promise.all([readStatus(systemScope(deps.db), deps), countUntold(deps.db)])
    const [{ parts }, untold] = await withinTime(looks, lookWithinMs)
    const lost = lostDuties(parts, untold)
    if (lost.length > 0) {
      deps.log.error({ lost: lost.map(({ name, detail }) => `${name}: ${detail}`) }, 'no heartbeat: a duty is lost')
      return
    }
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
      deps.log.error({ status }, 'the heartbeat was not taken: HEARTBEAT_URL is wrong, or what is behind it')
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

/** A database that hangs is a lost duty, and no heartbeat that waits for it. */
async function withinTime<T>(work: Promise<T>, withinMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the parts did not say in time how they are')), withinMs)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
