import type { CapabilityAnswer, MeshErrorCode } from '../../domain/mesh.ts'
import { cleanse } from '../../safety/cleanse.ts'
import { isGoodExit } from '../../safety/command/exit-code.ts'
import { judgeField } from '../../safety/command/judge.ts'
import { EffectRefused, type RefusalKind } from '../effect.ts'
import type { Executor, MappedCall } from './executor.ts'

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
  const isOlder = error?.code === 'invalid_arguments' && error.message.includes('Unrecognized key')
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
  toOutput: (result: Record<string, unknown>) => unknown,
): Record<string, unknown> {
  const output = toOutput(answer.result ?? {})
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
  }
}

/** The fields by which rows of the incident and the device's journal are compared. */
export function getAuditFields(answer: CapabilityAnswer): Record<string, unknown> {
  const { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms } = answer
  return { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms }
}

const maxLineCharacters = 200

/**
 * Why a command that was to change something failed, by its exit code: `exit code 128: fatal: …`. Null where it succeeded,
 * and for a command that only reads: there the exit code is a part of the answer.
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
  return judgeField(spec.command, input, new Set()).effect === 'read'
}

/** Adds the last line of stderr: programs print their error last. */
function withLastLine(text: string, { stderr }: Readonly<Record<string, unknown>>): string {
  const lines = typeof stderr === 'string' ? stderr.trim().split('\n') : []
  const last = String(cleanse(lines.at(-1)?.trim() ?? ''))
  if (last === '') return text
  return `${text}: ${last.length > maxLineCharacters ? `${last.slice(0, maxLineCharacters).toWellFormed()}…` : last}`
}
