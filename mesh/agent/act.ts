import type { CapabilityAnswer, CapabilityRequest, Manifest, MeshErrorCode } from '../../domain/mesh.ts'
import type { World } from './agent.ts'
import { type CapabilityContext, failed, type Outcome } from './capability.ts'
import { type Rests, whyUnmet as whyUnmetNow } from './discharge.ts'
import type { Ruling } from './guard.ts'
import { grantEndMs } from './guard.ts'
import { startTicksOf } from './members.ts'
import { Refused } from './outcome.ts'
import { runProgram } from './run.ts'

/** No look at what a read rests on may take longer. */
const lookMs = 10_000

export type Act = {
  request: CapabilityRequest
  ruling: Ruling & { ok: true }
  digest: string
  stopper: AbortController
  emit(line: string): void
  world: World
  manifest: Manifest
}

/**
 * Does what was ruled to be done, once: the journal tells that it was accepted before anything happens, with a write on disk, and what
 * came of it before anybody is answered. Never throws.
 */
export async function act({ request, ruling, digest, stopper, emit, world, manifest }: Act): Promise<CapabilityAnswer> {
  const { journal, nowMs } = world
  const startedMs = nowMs()
  const about = { request_id: request.request_id, device: request.device }
  const isWrite = ruling.effect === 'write'
  const granted = ruling.approval === 'granted' ? request.grant : null
  const unmet = ruling.rests && !request.rehearse ? await whyUnmet(ruling.rests) : null
  if (unmet !== null) return asked(`It needs a grant just now: ${unmet}.`)
  try {
    journal.known.forgetGrants(startedMs)
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
    if (isWrite || granted) await journal.durable()
  } catch (error) {
    const message = `Nothing was done, since the journal could not be written: ${(error as Error).message}`
    return refusalOf(about, { code: 'failed', message }, 'refused', ruling.command, null)
  }

  const deadlineMs = Math.min(Date.parse(request.deadline), startedMs + manifest.limits.timeout_seconds * 1000)
  const late = () => stopper.abort(new DOMException('the deadline has passed', 'TimeoutError'))
  const timer = setTimeout(late, Math.max(0, deadlineMs - nowMs()))
  const outcome = await outcomeOf()
  clearTimeout(timer)
  const answer = answerOf(about, {
    status: outcome.ok ? 'done' : 'failed',
    ok: outcome.ok,
    result: outcome.result,
    error: outcome.ok ? null : { code: outcome.code, message: outcome.message.slice(0, 2_000) },
    approval_status: ruling.approval,
    cmd_executed: ruling.command,
    truncated: outcome.truncated,
    duration_ms: Math.max(0, Math.round(nowMs() - startedMs)),
  })
  try {
    const { audit_hash: _, ...told } = answer
    const hash = journal.append({
      kind: 'done',
      request_id: request.request_id,
      key: request.idempotency_key,
      answer: told,
    })
    if (isWrite) await journal.durable()
    return { ...answer, audit_hash: hash }
  } catch {
    // It was done and is told; only the journal does not know, and will call it indeterminate.
    return answer
  }

  /** Nothing was begun: what it rests on is not so, and a person may see why. */
  function asked(message: string): CapabilityAnswer {
    const { request_id, idempotency_key: key, capability } = request
    const { command } = ruling
    const hash = journal.append({ kind: 'refused', request_id, key, capability, command, code: 'approval_required' })
    return refusalOf(about, { code: 'approval_required', message }, 'required', command, hash)
  }

  async function outcomeOf(): Promise<Outcome> {
    const { capability, args } = ruling
    try {
      return await (request.rehearse && capability.rehearse
        ? capability.rehearse(args, context())
        : capability.run(args, context()))
    } catch (error) {
      if (error instanceof Refused) return failed(error.code, error.message)
      if (stopper.signal.aborted) {
        const isLate = (stopper.signal.reason as Error).name === 'TimeoutError'
        return failed(
          isLate ? 'timeout' : 'cancelled',
          isLate ? 'It was stopped at the deadline.' : 'It was cancelled.',
        )
      }
      return failed('failed', error instanceof Error ? error.message : String(error))
    }
  }

  function tellProcess(pid: number): void {
    try {
      const start_ticks = startTicksOf(pid) ?? '0'
      journal.append({ kind: 'running', request_id: request.request_id, pid, start_ticks })
    } catch {
      // It is known as accepted: whoever starts after us only has to look for the process by its marker.
    }
  }

  /** Looked at before the journal knows of anything: what is started for it ends with it. */
  async function whyUnmet(rests: Rests): Promise<string | null> {
    const signal = AbortSignal.any([stopper.signal, AbortSignal.timeout(lookMs)])
    const at = { limits: manifest.limits, confinement: world.confinement, marker: request.request_id, signal }
    try {
      return await whyUnmetNow(rests, world.confinement, { run: (argv, options) => runProgram(argv, options, at) })
    } catch (error) {
      return `it could not be looked at: ${error instanceof Error ? error.message : String(error)}`
    }
  }

  function context(): CapabilityContext {
    return {
      manifest,
      state: world.state,
      hidden: world.hidden,
      signal: stopper.signal,
      emit,
      isGranted: ruling.approval === 'granted',
      whyUnmet,
      run: (argv, options) =>
        runProgram(argv, options, {
          limits: manifest.limits,
          confinement: world.confinement,
          marker: request.request_id,
          signal: stopper.signal,
          onStart: tellProcess,
        }),
    }
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
