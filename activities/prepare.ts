import { databaseTime } from '../db/clock.ts'
import { type Db, isTransient } from '../db/connect.ts'
import { noteWait, type WaitedFor } from '../db/incidents/waits.ts'
import { eventsOf } from '../db/log/events.ts'
import { undoOfRun } from '../db/writes/undo.ts'
import type { ProposedCall } from '../domain/event.ts'
import type { CallRef } from '../domain/step-key.ts'
import { type CorePort, highestRisk, type Preparation, type Tool } from '../domain/tool.ts'
import type { Undoes } from '../domain/undo.ts'
import { shownUndo } from '../domain/undo-answer.ts'
import { fold } from '../safety/fold.ts'
import type { Call } from '../safety/judge.ts'
import { resolveArguments } from '../safety/resolve-arguments.ts'
import { ProposalError } from '../tools/placement.ts'
import { tools } from '../tools/registry.ts'
import { toolContext } from './verify-write.ts'
import { patienceMs, retryWhileAway } from './wait-while-away.ts'

type Prepare = NonNullable<Tool['prepare']>

/**
 * Requests a dry run of a write, and waits for an unreachable core API. If the dry run cannot be
 * read, the judge decides.
 */
export async function prepare(
  deps: { db: Db; core: CorePort; patienceMs?: number },
  place: CallRef,
  call: ProposedCall,
  signal: AbortSignal,
): Promise<Call['prepared']> {
  const tool = tools.get(call.tool)
  if (!tool?.prepare || call.arguments === null || call.secret) return null
  const parsed = tool.input.safeParse(call.arguments)
  if (!parsed.success) return null
  // Resolves names first, so that the prepared call is the one that is judged.
  const { db } = deps
  const state = fold(await eventsOf(db, place.incidentId, { attempt: place.attempt }), place.attempt)
  const settled = resolveArguments(tool, parsed.data, state, Date.parse(await databaseTime(db)))
  try {
    const ask = async () => {
      const prepared = await (tool.prepare as Prepare)(settled.arguments, toolContext(deps, place, signal))
      const undoes = await undoOfRun(db, place.incidentId)
      return undoes ? await asUndo(deps, prepared, undoes, signal) : prepared
    }
    const note = (away: WaitedFor | null) => noteWait(db, place, away)
    return { ok: true, preparation: await retryWhileAway(ask, { forMs: deps.patienceMs ?? patienceMs, signal, note }) }
  } catch (error) {
    if (signal.aborted || isTransient(error)) throw error
    const reason = error instanceof ProposalError ? error.message : 'the effect of the call could not be determined'
    return { ok: false, reason }
  }
}

const lookedAt = shownUndo.pick({ look: true })

/**
 * Gives an undo at least the risk of the write that it undoes, and adds a read of the state that
 * the write left.
 */
async function asUndo(
  { core }: { core: CorePort },
  prepared: Preparation,
  { key, tool, incidentId, risk }: Undoes,
  signal: AbortSignal,
): Promise<Preparation> {
  const answer = await core.get(`/api/v1/effects/${encodeURIComponent(key)}/undo`, { signal })
  if (!answer.ok) throw new ProposalError(answer.problem.detail || answer.problem.title)
  const { look } = lookedAt.parse(answer.data)
  const why = `the call undoes ${tool} of ${incidentId}, which had ${risk} risk`
  return {
    ...prepared,
    asks: { risk: highestRisk(prepared.asks?.risk, risk), why: prepared.asks ? `${prepared.asks.why}; ${why}` : why },
    left: look ?? { isAsLeft: false, observed: 'the state that the write left is no longer known' },
  }
}
