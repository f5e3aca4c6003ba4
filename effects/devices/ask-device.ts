import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../../clients/http.ts'
import type { DeviceRow } from '../../db/inventory/devices.ts'
import { closeCall, openCall } from '../../db/writes/device-calls.ts'
import type { Capability, CapabilityAnswer, MeshErrorCode } from '../../domain/mesh.ts'
import {
  callDevice,
  followOperation,
  InvalidDeviceResponseError,
  readOperation,
  wasNotSent,
} from '../../mesh/client.ts'
import type { DeviceWay } from '../../mesh/exchange.ts'
import { argsDigest, issueGrant, issueRequest, type MeshKeys } from '../../mesh/sign.ts'
import { judgeField } from '../../safety/command/judge.ts'
import { isGoodExit } from '../../safety/command/unwrap.ts'
import { cleanse } from '../../safety/redact.ts'
import { type EffectDeps, EffectRefused, type RefusalKind } from '../effect.ts'
import { type Executor, type MappedCall, requireMesh, wayTo } from './executor.ts'

/** The device refused these before anything happened. */
const refused: ReadonlySet<MeshErrorCode> = new Set([
  'blocked',
  'approval_required',
  'outside_roots',
  'manifest_invalid',
  'grant_forged',
  'grant_replayed',
  'grant_expired',
  'grant_wrong_device',
  'grant_altered',
])

/** How a device's error is refused; the device's own word stays the refusal's `code`. */
export function toRefusalKind(code: MeshErrorCode): RefusalKind {
  if (refused.has(code)) return 'not_allowed'
  if (code === 'invalid_arguments' || code === 'malformed') return 'invalid'
  if (code === 'not_found') return 'not_found'
  if (code === 'busy') return 'too_many'
  return 'device_failed'
}

/** `device_mesh: shell.exec: approval_required: …`: the model reads the device's own word. */
export function describeError(capability: string, { error }: Pick<CapabilityAnswer, 'error'>): string {
  const message = error?.message ? `: ${error.message}` : ''
  // The control plane let the argument through, so it is the agent that does not know it.
  const isOlder = error?.code === 'invalid_arguments' && /Unrecognized key|not known here/.test(error.message)
  const remedy = isOlder ? ". The device's agent is older than this argument: leave it out, or update the agent" : ''
  return `device_mesh: ${capability}: ${error?.code ?? 'failed'}${message}${remedy}`
}

export function refuseByDevice(
  capability: string,
  answer: CapabilityAnswer,
  more: Record<string, unknown> = {},
): EffectRefused {
  const code = answer.error?.code ?? 'failed'
  const fields = { ...more, ...(answer.result && { result: answer.result }), ...getAuditFields(answer) }
  return new EffectRefused(toRefusalKind(code), code, describeError(capability, answer), { fields })
}

export function refuseUnreachable(device: string, capability: string, reason: string): EffectRefused {
  const detail = `device_mesh: ${capability}: device_unreachable: ${device} gave no answer (${reason})`
  return new EffectRefused('device_failed', 'device_unreachable', detail)
}

/** What the model and the timeline read of a finished call. */
export function buildOutput(
  { resource, device }: Executor,
  answer: CapabilityAnswer,
  { spec, input }: Pick<MappedCall, 'spec' | 'input'>,
): Record<string, unknown> {
  const result = answer.result ?? {}
  const bounded = spec.bound?.(result, input) ?? null
  const output = spec.toOutput(bounded ?? result)
  const fields: Record<string, unknown> =
    output !== null && typeof output === 'object' && !Array.isArray(output) ? { ...output } : { output }
  const { exit_code, signal, ...rest } = fields
  return {
    on: resource,
    device: device.id,
    // How a command ended stands before what it printed, which may be cut.
    ...(exit_code !== undefined && { exit_code }),
    ...(signal !== undefined && { signal }),
    ...rest,
    ...getAuditFields(answer),
    ...(bounded && { truncated: true }),
  }
}

/** The fields by which rows of the incident and the device's journal are compared. */
export function getAuditFields(answer: CapabilityAnswer): Record<string, unknown> {
  const { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms } = answer
  return { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms }
}

const maxLineCharacters = 200

/**
 * The reason why a changing command failed, by its exit code: `exit code 128: fatal: …`. Null for
 * success, and for a read: there the exit code is part of the answer.
 */
export function whyEndedBadly(
  { spec, input }: Pick<MappedCall, 'spec' | 'input'>,
  result: Readonly<Record<string, unknown>>,
): string | null {
  if (isReadOnly({ spec, input }) || !spec.command) return null
  const { exit_code: exitCode, signal } = result
  if (typeof signal === 'string') return withLastLine(`ended by ${signal}`, result)
  if (typeof exitCode !== 'number') return withLastLine('it was stopped, or how it ended is not known', result)
  return isGoodExit(spec.command, input, exitCode) ? null : withLastLine(`exit code ${exitCode}`, result)
}

/** Does the call only read, though a person had to allow it? */
export function isReadOnly({ spec, input }: Pick<MappedCall, 'spec' | 'input'>): boolean {
  if (!spec.command) return spec.effect === 'read'
  return judgeField(spec.command, input, { knownHosts: new Set() }).effect === 'read'
}

/** Adds the last line of stderr: programs print their error last. */
function withLastLine(text: string, { stderr }: Readonly<Record<string, unknown>>): string {
  const lines = typeof stderr === 'string' ? stderr.trim().split('\n') : []
  const last = String(cleanse(lines.at(-1)?.trim() ?? ''))
  if (last === '') return text
  return `${text}: ${last.length > maxLineCharacters ? `${last.slice(0, maxLineCharacters).toWellFormed()}…` : last}`
}

export type DeviceRequest = {
  /** `Idempotency-Key` of the call: the device does it once. */
  key: string
  capability: Capability
  args: Record<string, unknown>
  rehearse?: boolean
  /** Names that the command enters and that its run has looked up there. */
  names?: readonly string[]
  /** The consumed approval or the used grant of exactly this action; null for a read. */
  authority?: string | null
  incidentId?: string | null
  callId?: string | null
  deadlineMs: number
  /** True where the device carried a write out and its result says that the work failed. */
  endedBadly?: (result: Record<string, unknown>) => boolean
  /** Lines of its output, as they come. */
  onLine?: (line: string) => void
  signal?: AbortSignal
}

/**
 * `answer`: the device's, cleansed. `not_sent`: it never arrived. `unknown`: it may have; the key
 * tells once the device can be asked.
 */
export type DeviceReply =
  | { kind: 'answer'; answer: CapabilityAnswer }
  | { kind: 'not_sent'; reason: string }
  | { kind: 'unknown'; reason: string }

const maxTries = 4
const firstWaitMs = 150

/**
 * Makes one call to a device under one key, however often sent: its journal does it once. The call
 * is a row before it is sent, with the request id and grant of every repeat.
 */
export async function askDevice(deps: EffectDeps, device: DeviceRow, request: DeviceRequest): Promise<DeviceReply> {
  const { db, metrics } = deps
  const { keys } = requireMesh(deps)
  const { key, capability, args, authority = null, rehearse = false, incidentId = null, callId = null } = request
  const digest = argsDigest(args)
  const call = await openCall(db, {
    key,
    deviceId: device.id,
    incidentId,
    callId,
    capability,
    rehearse,
    authority,
    argsDigest: digest,
  })
  if (call.argsDigest !== digest || call.capability !== capability || call.deviceId !== device.id) {
    return { kind: 'not_sent', reason: 'this key was used for another call' }
  }
  const { requestId, grantId, begunAt: issuedAt } = call
  const grant =
    grantId === null || call.authority === null
      ? null
      : issueGrant(
          { id: grantId, device: device.id, requestId, capability, args, authority: call.authority, issuedAt },
          keys.signing,
        )
  const startedAt = performance.now()
  const reply = await send(deps, device, request, () =>
    issueRequest(
      {
        requestId,
        device: device.id,
        capability,
        args,
        idempotencyKey: key,
        rehearse,
        ...(request.names && { names: request.names }),
        grant,
        deadlineMs: request.deadlineMs,
        stream: request.onLine !== undefined,
      },
      keys.signing,
    ),
  )
  const seconds = (performance.now() - startedAt) / 1000
  const errorCode = reply.kind === 'answer' ? getErrorCode(reply.answer, request) : null
  const outcome = reply.kind === 'answer' ? (errorCode ?? 'ok') : reply.kind
  metrics.deviceCalls.inc({ capability, outcome })
  metrics.deviceCallSeconds.observe({ capability, outcome }, seconds)
  if (reply.kind === 'answer') await closeCall(db, key, reply.answer, errorCode)
  return reply
}

function getErrorCode({ ok, error, result }: CapabilityAnswer, { endedBadly }: DeviceRequest): string | null {
  if (ok) return endedBadly?.(result ?? {}) ? 'exit_code' : null
  return error?.code ?? 'failed'
}

async function send(
  deps: EffectDeps,
  device: DeviceRow,
  { onLine, signal, deadlineMs }: DeviceRequest,
  issue: () => ReturnType<typeof issueRequest>,
): Promise<DeviceReply> {
  const mesh = requireMesh(deps)
  const { keys } = mesh
  const way = wayTo(mesh, device)
  let everSent = false
  let reason = ''
  const untilMs = performance.now() + deadlineMs
  for (let attempt = 0; attempt < maxTries && (attempt === 0 || performance.now() < untilMs); attempt++) {
    if (attempt > 0) await sleep(firstWaitMs * 2 ** attempt)
    try {
      // Before it is signed: from then on its deadline runs.
      await way.ready(signal)
      const request = issue()
      const answer = await callDevice(way, request, signal)
      // A busy device began and journalled nothing: it may have room in a moment.
      if (answer.error?.code === 'busy' && attempt < maxTries - 1) continue
      if (answer.status !== 'running') return { kind: 'answer', answer: cleanse(answer) }
      everSent = true
      const ended = await followToEnd(way, request.request_id, { deadlineMs, onLine, signal, keys })
      if (ended) return { kind: 'answer', answer: cleanse(ended) }
      reason = `${device.id} has not said how it ended`
      return { kind: 'unknown', reason }
    } catch (error) {
      if (!(error instanceof HttpError) && !(error instanceof InvalidDeviceResponseError)) throw error
      everSent ||= !wasNotSent(error)
      reason = error.message
      // An invalid response is not retried; what the device did cannot be read from it.
      if (error instanceof InvalidDeviceResponseError) break
      if (error.code === 'aborted') break
    }
  }
  return { kind: everSent ? 'unknown' : 'not_sent', reason }
}

/** Follows a long operation to its end, by its lines or by asking; null when its time is over. */
async function followToEnd(
  way: DeviceWay,
  requestId: string,
  { deadlineMs, onLine, signal, keys }: Pick<DeviceRequest, 'deadlineMs' | 'onLine' | 'signal'> & { keys: MeshKeys },
): Promise<CapabilityAnswer | null> {
  const untilMs = performance.now() + deadlineMs + 5_000
  if (onLine) {
    try {
      const options = { timeoutMs: deadlineMs + 5_000, ...(signal && { signal }) }
      const answer = await followOperation(way, requestId, keys.signing, onLine, options)
      if (answer && answer.status !== 'running') return answer
    } catch (error) {
      // The lines are lost; the loop below asks how it ends.
      if (!(error instanceof HttpError)) throw error
    }
  }
  for (let waitMs = 100; performance.now() < untilMs; waitMs = Math.min(1_000, waitMs * 2)) {
    try {
      const answer = await readOperation(way, requestId, keys.signing)
      if (answer.status !== 'running') return answer
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
    }
    await sleep(waitMs)
  }
  return null
}
