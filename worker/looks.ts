import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { verificationNow } from '../activities/verify-write.ts'
import type { Db } from '../db/connect.ts'
import { incidentState } from '../db/incidents/incidents.ts'
import { giveLookBack, leaseLooks, recordLook, type WantedLook } from '../db/incidents/looks.ts'
import type { EventMetadata } from '../domain/event.ts'
import { differenceOf, type ResourceRef, type ResourceState, resourceKey, resourceState } from '../domain/registry.ts'
import type { CorePort } from '../domain/tool.ts'
import { givenBack, unlessStopping } from '../notify/give-back.ts'

type LookDeps = { db: Db; core: CorePort; log: Logger }

const pollEveryMs = 1_000
const batch = 5
/** Most resources of a repair that are checked, if the incident has no resource. */
const maxTargets = 5

/**
 * Runs the checks ("looks") that the watchdog requests, until stopped. A check reads a repair's
 * condition and the incident's resource over the core API, without a lock, and stores a row. The
 * watchdog decides the consequences.
 */
export function startLooks(deps: LookDeps): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const looking = (async () => {
    while (!stopping.signal.aborted) {
      const taken = await takeLooks(deps, stopping.signal).catch((error) => {
        deps.log.warn({ err: error }, 'the due checks could not be read')
        return 0
      })
      if (taken === 0) await sleep(pollEveryMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await looking
    },
  }
}

/** Runs the checks that are due. Returns the number of checks. */
export async function takeLooks(deps: LookDeps, stopping = new AbortController().signal): Promise<number> {
  const wanted = await leaseLooks(deps.db, batch)
  await Promise.all(
    wanted.map(async (each) => {
      try {
        const seen = await unlessStopping(lookAt(deps, each), stopping)
        if (seen === givenBack) await giveLookBack(deps.db, each)
        else await recordLook(deps.db, each, seen.look, seen.differs)
      } catch (error) {
        deps.log.warn({ err: error, incidentId: each.incidentId }, 'a check failed; it is repeated')
      }
    }),
  )
  return wanted.length
}

async function lookAt(
  deps: LookDeps,
  wanted: WantedLook,
): Promise<{ look: EventMetadata['looked']; differs: string | null }> {
  const writes = wanted.purpose === 'watch' ? await verificationNow(deps, wanted) : null
  const about = wanted.resource ? [wanted.resource] : (writes?.targets ?? []).slice(0, maxTargets)
  const states = await Promise.all(about.map((ref) => readState(deps.core, ref)))
  const look: EventMetadata['looked'] = {
    purpose: wanted.purpose,
    verification: writes?.outcome ?? null,
    resource: worstOf(states),
    about,
    observed:
      [...(writes ? [writes.observed] : []), ...states.map(({ observed }) => observed)].join('; ') ||
      'nothing to check',
    state: states[0] ?? null,
  }
  return { look, differs: wanted.purpose === 'expected' ? await differs(deps, wanted, states[0] ?? null) : null }
}

/** Reads a resource's state from the core API. Never throws: an unreadable state is `unknown`. */
async function readState(core: CorePort, { kind, id }: ResourceRef): Promise<ResourceState> {
  const unknown = (why: string): ResourceState => ({ health: 'unknown', observed: `${kind} ${id}: ${why}`, fields: {} })
  try {
    const answer = await core.get(`/api/v1/resources/${kind}/${encodeURIComponent(id)}/state`)
    if (!answer.ok) return unknown(answer.problem.detail)
    return resourceState.parse(answer.data)
  } catch {
    return unknown('the resource could not be read')
  }
}

function worstOf(states: ResourceState[]): EventMetadata['looked']['resource'] {
  if (states.length === 0) return null
  return (['degraded', 'unknown'] as const).find((word) => states.some(({ health }) => health === word)) ?? 'nominal'
}

/** Stored data of the mark that an incident is expected, with the state of its resource then. */
type Marked = ResourceState & { severity?: string; resource?: ResourceRef | null }

async function differs(
  { db }: LookDeps,
  { expectation, incidentId, resource }: WantedLook,
  now: ResourceState | null,
): Promise<string | null> {
  if (!expectation) return 'the mark is gone'
  const marked = expectation.state as Marked
  const severity = (await incidentState(db, incidentId))?.severity
  if (marked.severity && marked.severity !== severity) return `the severity was ${marked.severity} and is ${severity}`
  // Compares no state if the incident has no resource; the alert's severity was compared above.
  if (!now) return marked.resource ? 'the resource is not known any more' : null
  const isSame = marked.resource != null && resource !== null && resourceKey(marked.resource) === resourceKey(resource)
  return differenceOf(marked, now, isSame)
}
