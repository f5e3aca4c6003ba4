import type { CapabilityAnswer, CapabilityRequest, Manifest, MeshErrorCode } from '../../domain/mesh.ts'
import { startTicksOf } from './agent-processes.ts'
import type { AgentWorld } from './agent-state.ts'
import { type CapabilityContext, CapabilityError, type CapabilityOutcome, failedOutcome } from './capability.ts'
import { type GuardRuling, grantEndMs } from './guard.ts'
import { type Preconditions, whyUnmet as whyUnmetNow } from './preconditions.ts'
import { runProgram } from './run.ts'

/** Milliseconds for the check of a precondition. */
const probeMs = 10_000

type AcceptedRequest = {
  request: CapabilityRequest
  ruling: GuardRuling & { ok: true }
  digest: string
  stopper: AbortController
  emit(line: string): void
  world: AgentWorld
  manifest: Manifest
}

/**
 * Carries out an accepted request once. The journal records the acceptance before the call starts
 * (on disk for a write call), and the outcome before the caller gets the response. Never throws.
 */
export async function act(task: AcceptedRequest): Promise<CapabilityAnswer> {
  const { request, ruling, world } = task
  const startedMs = world.nowMs()
  const unmet = ruling.rests && !request.rehearse ? await whyUnmet(task, ruling.rests) : null
  if (unmet !== null) return askFirst(task, `The call needs a grant now: ${unmet}.`)
  try {
    await accept(task, startedMs)
  } catch (error) {
    const message = `Nothing was done, because the journal could not be written: ${(error as Error).message}`
    return refusalOf(aboutOf(request), { code: 'failed', message }, 'refused', ruling.command, null)
  }
  const outcome = await runUntilDeadline(task, startedMs)
  const answer = answerOf(aboutOf(request), {
    status: outcome.ok ? 'done' : 'failed',
    ok: outcome.ok,
    result: outcome.result,
    error: outcome.ok ? null : { code: outcome.code, message: outcome.message.slice(0, 2_000) },
    approval_status: ruling.approval,
    cmd_executed: ruling.command,
    truncated: outcome.truncated,
    duration_ms: Math.max(0, Math.round(world.nowMs() - startedMs)),
  })
  return await recordAnswer(task, answer)
}

const aboutOf = ({ request_id, device }: CapabilityRequest): About => ({ request_id, device })

/**
 * Checks the preconditions before the journal accepts the request. A program that is started for
 * the check does not outlive the check.
 */
async function whyUnmet(
  { request, stopper, world, manifest }: AcceptedRequest,
  rests: Preconditions,
): Promise<string | null> {
  const signal = AbortSignal.any([stopper.signal, AbortSignal.timeout(probeMs)])
  const { confinement } = world
  const runner = { limits: manifest.limits, confinement, marker: request.request_id, signal }
  try {
    return await whyUnmetNow(rests, confinement, { run: (argv, options) => runProgram(argv, options, runner) })
  } catch (error) {
    return `the call could not be checked: ${error instanceof Error ? error.message : String(error)}`
  }
}

/**
 * Refuses the request because a precondition does not hold. No program of the call was started, and
 * a person may approve the call.
 */
function askFirst({ request, ruling, world }: AcceptedRequest, message: string): CapabilityAnswer {
  const { request_id, idempotency_key: key, capability } = request
  const { command } = ruling
  const code = 'approval_required'
  const hash = world.journal.append({ kind: 'refused', request_id, key, capability, command, code })
  return refusalOf(aboutOf(request), { code, message }, 'required', command, hash)
}

/** Records that the key belongs to this request. For a write or a grant, waits for the disk. */
async function accept(
  { request, ruling, digest, world: { journal } }: AcceptedRequest,
  startedMs: number,
): Promise<void> {
  const granted = ruling.approval === 'granted' ? request.grant : null
  journal.index.forgetGrants(startedMs)
  journal.append({
    kind: 'accepted',
    request_id: request.request_id,
    key: request.idempotency_key,
    digest,
    capability: request.capability,
    effect: ruling.effect,
    approval: ruling.approval,
    command: ruling.command,
    grant: granted && { id: granted.id, authority: granted.authority, ends_ms: grantEndMs(granted) },
    key_id: request.key_id,
  })
  if (ruling.effect === 'write' || granted) await journal.durable()
}

async function runUntilDeadline(task: AcceptedRequest, startedMs: number): Promise<CapabilityOutcome> {
  const { request, manifest, stopper, world } = task
  const deadlineMs = Math.min(Date.parse(request.deadline), startedMs + manifest.limits.timeout_seconds * 1000)
  const late = () => stopper.abort(new DOMException('the deadline has passed', 'TimeoutError'))
  const timer = setTimeout(late, Math.max(0, deadlineMs - world.nowMs()))
  const outcome = await outcomeOf(task)
  clearTimeout(timer)
  return outcome
}

async function outcomeOf(task: AcceptedRequest): Promise<CapabilityOutcome> {
  const { request, stopper } = task
  const { capability, args } = task.ruling
  try {
    return await (request.rehearse && capability.rehearse
      ? capability.rehearse(args, contextFor(task))
      : capability.run(args, contextFor(task)))
  } catch (error) {
    if (error instanceof CapabilityError) return failedOutcome(error.code, error.message)
    if (stopper.signal.aborted) {
      const isLate = (stopper.signal.reason as Error).name === 'TimeoutError'
      return failedOutcome(
        isLate ? 'timeout' : 'cancelled',
        isLate ? 'The call was stopped at the deadline.' : 'The call was cancelled.',
      )
    }
    return failedOutcome('failed', error instanceof Error ? error.message : String(error))
  }
}

function contextFor(task: AcceptedRequest): CapabilityContext {
  const { request, ruling, stopper, emit, world, manifest } = task
  const { confinement, journal } = world
  const noteProcess = (pid: number): void => {
    try {
      const start_ticks = startTicksOf(pid) ?? '0'
      journal.append({ kind: 'running', request_id: request.request_id, pid, start_ticks })
    } catch {
      // Ignores the error: the journal has already accepted the request, and the next agent finds
      // the process by its marker.
    }
  }
  return {
    manifest,
    state: world.state,
    hidden: world.hidden,
    names: request.names ?? [],
    signal: stopper.signal,
    emit,
    isGranted: ruling.approval === 'granted',
    whyUnmet: (rests) => whyUnmet(task, rests),
    run: (argv, options) =>
      runProgram(argv, options, {
        limits: manifest.limits,
        confinement,
        marker: request.request_id,
        signal: stopper.signal,
        onStart: noteProcess,
      }),
  }
}

/**
 * Appends the response to the journal (on disk for a write call), and adds the entry's hash to the
 * response.
 */
async function recordAnswer(
  { request, ruling, world }: AcceptedRequest,
  answer: CapabilityAnswer,
): Promise<CapabilityAnswer> {
  const { journal } = world
  try {
    const { audit_hash: _, ...stored } = answer
    const { request_id, idempotency_key: key } = request
    const hash = journal.append({ kind: 'done', request_id, key, answer: stored })
    if (ruling.effect === 'write') await journal.durable()
    return { ...answer, audit_hash: hash }
  } catch {
    // Returns the response, because the call was done. Only the journal reports the call as
    // indeterminate.
    return answer
  }
}

type About = { request_id: string; device: string }

export function answerOf(
  about: About,
  rest: Partial<CapabilityAnswer> & Pick<CapabilityAnswer, 'status' | 'ok'>,
): CapabilityAnswer {
  return {
    ...about,
    result: null,
    error: null,
    approval_status: 'auto_approved',
    cmd_executed: null,
    audit_hash: null,
    truncated: false,
    duration_ms: 0,
    ...rest,
  }
}

export function refusalOf(
  about: About,
  error: { code: MeshErrorCode; message: string },
  approval: 'required' | 'refused',
  command: string | null,
  auditHash: string | null,
): CapabilityAnswer {
  return answerOf(about, {
    status: 'failed',
    ok: false,
    error: { code: error.code, message: error.message.slice(0, 2_000) },
    approval_status: approval,
    cmd_executed: command,
    audit_hash: auditHash,
  })
}
