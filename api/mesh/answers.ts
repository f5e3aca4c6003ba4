import type { CapabilityAnswer, MeshErrorCode } from '../../domain/mesh.ts'
import { Problem } from '../problem.ts'
import type { Executor } from './executor.ts'

/** What the device said no to before anything happened is not a failure of what was tried. */
const refused: ReadonlySet<MeshErrorCode> = new Set([
  ...(['blocked', 'approval_required', 'outside_roots', 'manifest_invalid'] as const),
  ...(['grant_forged', 'grant_replayed', 'grant_expired', 'grant_wrong_device', 'grant_altered'] as const),
])

/** The status a device's word is answered with; the word itself is the problem's `code`, as it stands. */
export function statusOf(code: MeshErrorCode): number {
  if (refused.has(code)) return 403
  if (code === 'invalid_arguments' || code === 'malformed') return 422
  if (code === 'not_found') return 404
  if (code === 'busy') return 429
  return 424
}

/** `device_mesh: shell.exec: approval_required: …`: the model reads the device's own word. */
export function wordsOf(capability: string, { error }: Pick<CapabilityAnswer, 'error'>): string {
  return `device_mesh: ${capability}: ${error?.code ?? 'failed'}${error?.message ? `: ${error.message}` : ''}`
}

/** What the model and the timeline read of a call that was done. */
export function outputOf(
  { resource, device }: Executor,
  answer: CapabilityAnswer,
  toOutput: (result: Record<string, unknown>) => unknown,
): Record<string, unknown> {
  const output = toOutput(answer.result ?? {})
  const told: Record<string, unknown> =
    output !== null && typeof output === 'object' && !Array.isArray(output) ? { ...output } : { output }
  const { exit_code, signal, ...rest } = told
  return {
    on: resource,
    device: device.id,
    // How a command ended stands before what it printed, which may be cut.
    ...(exit_code !== undefined && { exit_code }),
    ...(signal !== undefined && { signal }),
    ...rest,
    ...traces(answer),
  }
}

/** By which the rows of the incident and the journal of the device can be held against each other. */
export function traces(answer: CapabilityAnswer): Record<string, unknown> {
  const { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms } = answer
  return { request_id, cmd_executed, approval_status, audit_hash, truncated, duration_ms }
}

export function deviceProblem(
  capability: string,
  answer: CapabilityAnswer,
  more: Record<string, unknown> = {},
): Problem {
  const code = answer.error?.code ?? 'failed'
  const fields = { ...more, ...(answer.result && { result: answer.result }), ...traces(answer) }
  return new Problem(statusOf(code), code, wordsOf(capability, answer), { fields })
}

export function unreachable(device: string, capability: string, reason: string): Problem {
  const detail = `device_mesh: ${capability}: device_unreachable: ${device} gave no answer (${reason})`
  return new Problem(424, 'device_unreachable', detail)
}
