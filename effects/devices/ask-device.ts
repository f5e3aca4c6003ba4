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

/** Codes of errors with which a device refuses a call before anything happens. */
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

/** Maps a device's error to a kind of refusal. The device's own code stays the refusal's `code`. */
export function toRefusalKind(code: MeshErrorCode): RefusalKind {
  if (refused.has(code)) return 'not_allowed'
  if (code === 'invalid_arguments' || code === 'malformed') return 'invalid'
  if (code === 'not_found') return 'not_found'
  if (code === 'busy') return 'too_many'
  return 'device_failed'
}

/** Formats `device_mesh: shell.exec: approval_required: …`, with the code of the device. */
export function describeError(capability: string, { error }: Pick<CapabilityAnswer, 'error'>): string {
  const message = error?.message ? `: ${error.message}` : ''
  // Suggests an update of the agent: it is too old for an argument that the control plane accepted.
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

/** Builds what the model and the timeline show of a finished call. */
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
    // Puts the exit code before the output, which may be cut.
    ...(exit_code !== undefined && { exit_code }),
    ...(signal !== undefined && { signal }),
    ...rest,
    ...getAuditFields(answer),
    ...(bounded && { truncated: true }),
  }
}

/** Returns the fields by which the incident's rows and the device's journal can be compared. */
export function getAuditFields(answer: CapabilityAnswer): Record<string, unknown> {
  const { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms } = answer
  return { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms }
}

const maxLineCharacters = 200

/**
 * Returns why a changing command failed, with its exit code: `exit code 128: fatal: …`. Null for
 * success, and for a read, whose exit code is part of the answer.
 */
export function whyEndedBadly(
  { spec, input }: Pick<MappedCall, 'spec' | 'input'>,
  result: Readonly<Record<string, unknown>>,
): string | null {
  if (isReadOnly({ spec, input }) || !spec.command) return null
  const { exit_code: exitCode, signal } = result
  if (typeof signal === 'string') return withLastLine(`ended by ${signal}`, result)
  if (typeof exitCode !== 'number') return withLastLine('the command was stopped, or how it ended is not known', result)
  return isGoodExit(spec.command, input, exitCode) ? null : withLastLine(`exit code ${exitCode}`, result)
}

/** Whether the call only reads, even if a person had to allow it. */
export function isReadOnly({ spec, input }: Pick<MappedCall, 'spec' | 'input'>): boolean {
  if (!spec.command) return spec.effect === 'read'
  return judgeField(spec.command, input, { knownHosts: new Set() }).effect === 'read'
}

/** Adds the last line of stderr, because programs print their error last. */
function withLastLine(text: string, { stderr }: Readonly<Record<string, unknown>>): string {
  const lines = typeof stderr === 'string' ? stderr.trim().split('\n') : []
  const last = String(cleanse(lines.at(-1)?.trim() ?? ''))
  if (last === '') return text
  return `${text}: ${last.length > maxLineCharacters ? `${last.slice(0, maxLineCharacters).toWellFormed()}…` : last}`
}

export type DeviceRequest = {
  /** `Idempotency-Key` of the call: the device carries out the call only once. */
  key: string
  capability: Capability
  args: Record<string, unknown>
  rehearse?: boolean
  /** Names that the command uses and that its run has looked up on this device. */
  names?: readonly string[]
  /** The approval or grant that was used for exactly this action; null for a read. */
  authority?: string | null
  incidentId?: string | null
  callId?: string | null
  deadlineMs: number
  /** Returns true if the device carried out a write but the result is a failure. */
  endedBadly?: (result: Record<string, unknown>) => boolean
  /** Called with each line of the operation's output. */
  onLine?: (line: string) => void
  signal?: AbortSignal
}

/**
 * `answer`: the device's answer, cleansed of secrets. `not_sent`: the request never arrived.
 * `unknown`: the request may have arrived; once the device can be reached, its journal can report
 * the outcome by the key.
 */
export type DeviceReply =
  | { kind: 'answer'; answer: CapabilityAnswer }
  | { kind: 'not_sent'; reason: string }
  | { kind: 'unknown'; reason: string }

const maxTries = 4
const firstWaitMs = 150

/**
 * Makes one call to a device under one key: however often the call is sent, the device's journal
 * lets it run once. The call is written as a row before it is sent. Every repetition has the same
 * request id and grant.
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
      // Waits for the connection before signing, because the deadline starts with the signature.
      await way.ready(signal)
      const request = issue()
      const answer = await callDevice(way, request, signal)
      // Sends the call again if the device is busy: the device began and journalled nothing, and
      // may be free soon.
      if (answer.error?.code === 'busy' && attempt < maxTries - 1) continue
      if (answer.status !== 'running') return { kind: 'answer', answer: cleanse(answer) }
      everSent = true
      const ended = await followToEnd(way, request.request_id, { deadlineMs, onLine, signal, keys })
      if (ended) return { kind: 'answer', answer: cleanse(ended) }
      reason = `${device.id} has not reported how the call ended`
      return { kind: 'unknown', reason }
    } catch (error) {
      if (!(error instanceof HttpError) && !(error instanceof InvalidDeviceResponseError)) throw error
      everSent ||= !wasNotSent(error)
      reason = error.message
      // Does not retry after an invalid response, which does not tell what the device did.
      if (error instanceof InvalidDeviceResponseError) break
      if (error.code === 'aborted') break
    }
  }
  return { kind: everSent ? 'unknown' : 'not_sent', reason }
}

/**
 * Follows a long operation to its end, by its lines of output or by polling. Null if the operation
 * has not ended in time.
 */
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
      // Continues without the lines of output. The loop below polls for the end of the operation.
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
