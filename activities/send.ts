import { setTimeout as sleep } from 'node:timers/promises'
import { activityInfo } from '@temporalio/activity'
import { z } from 'zod'
import { HttpError } from '../clients/http.ts'
import { approvalState } from '../db/approvals/find.ts'
import { databaseTime } from '../db/clock.ts'
import type { Db, Trx } from '../db/connect.ts'
import { noteWait, type WaitedFor } from '../db/incidents/waits.ts'
import { otherNames } from '../db/inventory/registry.ts'
import { actionOf, append } from '../db/log/append.ts'
import { inlineLimitBytes, storeBody } from '../db/log/bodies.ts'
import { type Changed, readChanged, sayChanged } from '../domain/changed.ts'
import { blockedEnvelope, failedEnvelope, saysNotYet } from '../domain/envelope.ts'
import type { BodyRef, IncidentEvent } from '../domain/event.ts'
import type { ErrorClass } from '../domain/refusal.ts'
import { resourceKey } from '../domain/registry.ts'
import { sayResult } from '../domain/say.ts'
import { type CallRef, stepKey } from '../domain/step-key.ts'
import type { CoreAnswer, CorePort, DiscoveredThing, Envelope, Tool } from '../domain/tool.ts'
import type { RecordedUndo } from '../domain/undo.ts'
import { tools } from '../tools/registry.ts'
import { NonRetryable, RetryLater } from './failures.ts'
import { closeByReading, toolContext } from './verify-write.ts'
import { notYet, patienceMs, retryWhileAway, whoIsAway } from './wait-while-away.ts'

/** `patienceMs`: how long a read waits for an unreachable core API; ten minutes by default. */
type SendDeps = { db: Db; core: CorePort; patienceMs?: number }
type Started = IncidentEvent<'tool_started'>
type SendOutcome = 'done' | 'failed' | 'indeterminate'
type Sent = { envelope: Envelope; outcome: SendOutcome }

/** Number of attempts after which a read that gets error answers fails. */
const readTries = 3
/**
 * Longest waits for a running effect before it counts as lost: for one write, and for a plan of
 * many live migrations or a declared job.
 */
const effectWaitMs = 10 * 60_000
const longWaitMs = 2 * 3_600_000

/**
 * Sends a started call and writes `tool_finished`. `again`: an earlier attempt may have sent the
 * call; a write is then sent only if the receiver does not know its key.
 */
export async function send(
  deps: SendDeps,
  place: CallRef,
  started: Started,
  options: { again: boolean; signal: AbortSignal },
): Promise<IncidentEvent<'tool_finished'>> {
  const tool = tools.get(started.metadata.tool)
  if (!tool) throw new NonRetryable('TOOL_REMOVED')
  const beganAt = performance.now()
  const { effect } = started.metadata
  const sent =
    effect === 'write'
      ? await sendWrite(deps, place, started, tool, options)
      : await sendOther(deps, place, started, tool, options.signal)
  const finished = await finish(deps.db, place, started, {
    tool,
    sent,
    durationMs: Math.round(performance.now() - beganAt),
  })
  if (sent.envelope.ok && (effect === 'read' || effect === 'resolve')) await closeByReading(deps, place, finished)
  return finished
}

/**
 * Sends a read, or a record or terminal call. A read may run twice. A record or terminal call is
 * stored by its key, and a repetition only reads the stored answer. Waits for a core API that is
 * unreachable or answers "not yet", because a model that reads of an outage would escalate.
 */
async function sendOther(
  deps: SendDeps,
  place: CallRef,
  started: Started,
  tool: Tool,
  signal: AbortSignal,
): Promise<Sent> {
  const forMs = await patienceLeftMs(deps, started)
  const note = (away: WaitedFor | null) => noteWait(deps.db, place, away)
  try {
    const run = async () => {
      const answer = await tool.run(started.metadata.arguments, toolContext(deps, place, signal))
      if (isNotYet(answer)) throw new RetryLater(notYet)
      return answer
    }
    const answer = await retryWhileAway(run, { forMs, signal, note })
    if (answer.ok || answer.status < 500) return sentOf(answer)
    throw new RetryLater(`CORE_API_${answer.status}`)
  } catch (error) {
    const isRefusal = error instanceof RetryLater || (error instanceof HttpError && error.code !== 'aborted')
    if (!isRefusal || started.metadata.effect === 'terminal') throw error
    // Counts only attempts with an answer, because the wait for an outage has its own limit.
    if (whoIsAway(error) === null && activityInfo().attempt < readTries) throw error
    return { envelope: failedEnvelope('UNANSWERED', `the core API did not respond (${error.code})`), outcome: 'failed' }
  }
}

/**
 * Returns the time left to wait, counted from the row that began the call, by the database's clock,
 * so that a crash of the worker does not restart the wait.
 */
async function patienceLeftMs(deps: SendDeps, started: Started): Promise<number> {
  const now = Date.parse(await databaseTime(deps.db))
  return (deps.patienceMs ?? patienceMs) - (now - Date.parse(started.at))
}

async function sendWrite(
  deps: SendDeps,
  place: CallRef,
  started: Started,
  tool: Tool,
  { again, signal }: { again: boolean; signal: AbortSignal },
): Promise<Sent> {
  if (again) {
    const known = await becameOf(deps, started, signal)
    if (known) return known
    // Sends the write for the first time: the receiver's journal never had the key, so nothing
    // happened.
  }
  const ifMatch =
    started.metadata.approvalId === null
      ? null
      : (await approvalState(deps.db, started.metadata.approvalId))?.stateFingerprint || null
  try {
    const answer = await tool.run(started.metadata.arguments, { ...toolContext(deps, place, signal), ifMatch })
    if (answer.ok || (answer.status < 500 && !isNotYet(answer))) return sentOf(answer)
  } catch (error) {
    if (!(error instanceof HttpError) || error.code === 'aborted') throw error
  }
  // Reads the effect by its key if the receiver gave no clear answer: the write may have begun.
  const known = await becameOf(deps, started, signal)
  if (known) return known
  throw new RetryLater('WRITE_NOT_ACCEPTED')
}

const effectStatus = z.object({
  status: z.enum(['running', 'done', 'failed', 'indeterminate']),
  detail: z.string(),
  result: z.record(z.string(), z.unknown()),
})

/**
 * Reads what became of an effect, and waits while it runs. Returns null if its key was never
 * accepted. Throws if the effect cannot be read.
 */
async function becameOf(deps: SendDeps, started: Started, signal: AbortSignal): Promise<Sent | null> {
  const beganMs = Date.now()
  for (;;) {
    const answer = await deps.core.get(`/api/v1/effects/${encodeURIComponent(started.stepKey ?? '')}`, { signal })
    if (!answer.ok && answer.status === 404) return null
    if (!answer.ok) throw new RetryLater('EFFECT_UNREADABLE')
    const effect = effectStatus.parse(answer.data)
    if (effect.status === 'done') {
      return {
        envelope: { ok: true, data: { detail: effect.detail, ...effect.result }, meta: { lookedUp: true } },
        outcome: 'done',
      }
    }
    const waitMs = 'proposalId' in effect.result || 'job' in effect.result ? longWaitMs : effectWaitMs
    if (effect.status === 'failed') {
      const data = Object.keys(effect.result).length > 0 ? effect.result : undefined
      return { envelope: failedEnvelope('EFFECT_FAILED', effect.detail, data), outcome: 'failed' }
    }
    if (effect.status === 'indeterminate' || Date.now() - beganMs > waitMs) {
      return {
        envelope: failedEnvelope('INDETERMINATE', 'it is not known whether the call took effect'),
        outcome: 'indeterminate',
      }
    }
    await sleep(300, undefined, { signal })
  }
}

const isNotYet = (answer: CoreAnswer) => !answer.ok && saysNotYet(answer.status, answer.problem.code)

function sentOf(answer: CoreAnswer): Sent {
  if (!answer.ok && answer.status === 403 && answer.problem.code === 'UNJUDGED') {
    return {
      envelope: blockedEnvelope('POLICY_BLOCKED', 'UNJUDGED', answer.problem.detail),
      outcome: 'failed',
    }
  }
  return { envelope: toEnvelope(answer), outcome: answer.ok ? 'done' : 'failed' }
}

async function finish(
  db: Db,
  place: CallRef,
  started: Started,
  { tool, sent, durationMs }: { tool: Tool; sent: Sent; durationMs: number },
): Promise<IncidentEvent<'tool_finished'>> {
  const { envelope, discovered: told, listed } = checked(tool, started, sent)
  const changed = started.metadata.effect === 'write' ? changedBy(envelope) : undefined
  const plain = sayResult(tool, envelope, started.metadata.arguments)
  const said = plain === null ? null : sayChanged(plain, changed ?? null)
  const text = envelope.data === undefined ? '' : JSON.stringify(envelope.data)
  return await db.transaction().execute(async (trx) => {
    let body: BodyRef | null = null
    if (Buffer.byteLength(text) > inlineLimitBytes) body = await storeBody(trx, text)
    const discovered = await withOtherNames(trx, told)
    const { data, ...bare } = envelope
    const result: Envelope = body === null ? (data === undefined ? bare : { ...bare, data }) : bare
    const { event } = await append(trx, place.incidentId, place.attempt, {
      kind: 'tool_finished',
      actor: started.actor,
      turn: place.turn,
      stepKey: stepKey(place, place.turn, 'tool_finished', place.call),
      action: actionOf('tool_finished', { effect: started.metadata.effect }),
      detail: `Called tool: ${tool.name}`,
      metadata: {
        callId: started.metadata.callId,
        tool: tool.name,
        arguments: started.metadata.arguments,
        effect: started.metadata.effect,
        targets: started.metadata.targets,
        outcome: sent.outcome,
        result,
        body,
        discovered,
        ...(listed && { listed }),
        durationMs,
        ...(said !== null && { said }),
        ...(changed !== undefined && { changed }),
        ...undoBy(tool, started.metadata.arguments, sent, changed),
      },
    })
    return event
  })
}

/**
 * Builds the undo from the receiver's answer now, because the state that the write left cannot be
 * determined later.
 */
function undoBy(
  tool: Tool,
  args: Record<string, unknown>,
  { outcome, envelope }: Sent,
  changed: Changed | undefined,
): { undo?: RecordedUndo } {
  if (!tool.undo || outcome !== 'done') return {}
  if (changed?.length === 0) return { undo: { none: 'it changed nothing' } }
  return { undo: tool.undo.of(args, (envelope.data ?? {}) as Record<string, unknown>) }
}

/** Returns what a write changed. A write that was refused before it began changed nothing. */
function changedBy({ data, error }: Envelope): Changed {
  const told = readChanged(data)
  if (told !== null || !error) return told
  const status = Number(error.details.status ?? 0)
  return error.blocked || (data === undefined && status >= 400 && status < 500) ? [] : null
}

/** Adds a read resource under each of its other names, because the read counts for all of them. */
async function withOtherNames(trx: Trx, told: readonly DiscoveredThing[]): Promise<DiscoveredThing[]> {
  const others = await otherNames(trx, told)
  const more = told.flatMap((thing) =>
    (others.get(resourceKey(thing)) ?? []).map(({ kind, id }) => ({ ...thing, kind, id, name: id, aliases: [] })),
  )
  const known = new Set(told.map(resourceKey))
  return [...told, ...more.filter((thing) => !known.has(resourceKey(thing)))]
}

/**
 * Treats an answer that does not fit the tool's schema as a failure, whatever its status; no
 * resource counts as found by it.
 */
function checked(tool: Tool, started: Started, { envelope }: Sent) {
  if (!envelope.ok) return { envelope, discovered: [], listed: null }
  const parsed = tool.output.safeParse(envelope.data)
  if (parsed.success) {
    const { arguments: args } = started.metadata
    return { envelope, discovered: tool.discovers(parsed.data, args), listed: tool.lists?.(parsed.data, args) ?? null }
  }
  if (started.metadata.effect === 'write') return { envelope, discovered: [], listed: null }
  return {
    envelope: failedEnvelope('BAD_ANSWER', `${tool.name} returned a response that does not fit its schema`),
    discovered: [],
    listed: null,
  }
}

/**
 * Builds a call's result in the form that all tools share. `code` is one of nine classes of error,
 * `details.rule` the exact code.
 */
export function toEnvelope(answer: CoreAnswer): Envelope {
  if (answer.ok) return { ok: true, data: answer.data, meta: {} }
  const { status, problem } = answer
  return {
    ok: false,
    ...(problem.result !== undefined && { data: problem.result }),
    error: {
      code: classOf(status),
      message: problem.detail || problem.title,
      blocked: status === 401 || status === 403 || status === 412,
      failed: true,
      retryable: status >= 500 || status === 409 || status === 429,
      details: { rule: problem.code ?? `HTTP_${status}`, status, auto_recoverable: false },
    },
    meta: {},
  }
}

function classOf(status: number): ErrorClass {
  if (status === 404 || status === 410) return 'NOT_FOUND'
  if (status === 400 || status === 422) return 'INVALID_INPUT'
  if (status === 401 || status === 403) return 'ACTION_NOT_ALLOWED'
  return 'EXECUTION_FAILED'
}
