import { randomUUID } from 'node:crypto'
import type { Capability } from '../../domain/mesh.ts'
import { missingPrerequisite as lacking, type MeshSpec, specOf } from '../../mesh/registry.ts'
import { Problem } from '../problem.ts'
import { type Executor, remedy, Unavailable } from './executor.ts'

/** A device's request, as the spec maps what was asked: by the resource's own agent, or by its host's. */
export type Mapped = {
  spec: MeshSpec
  input: Record<string, unknown>
  capability: Capability
  args: Record<string, unknown>
}

/** Reads arguments by the tool's own schema; 422 names the field. */
export function readInput(spec: MeshSpec, args: unknown): Record<string, unknown> {
  const parsed = spec.input.safeParse(args)
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  throw new Problem(422, 'invalid_arguments', `${spec.name}: ${first?.path.join('.') || 'args'}: ${first?.message}`)
}

/** What the executor is to be asked. Throws Unavailable where it does not have it, with the reason. */
export function mapCall(
  { device, resource, through }: Executor,
  spec: MeshSpec,
  input: Record<string, unknown>,
): Mapped {
  const own = { spec, input, capability: spec.capability, args: spec.toArgs(input) }
  if (through === null) return checked(device.id, own, lacking(spec, device))
  const asked = spec.throughHost?.(resource.id, through, input) ?? 'that takes an agent on the guest itself'
  if (typeof asked === 'string') {
    const what = `${resource.kind} ${resource.id} has no agent of its own, and through the one of its host (${device.id})`
    throw new Unavailable(
      `capability unavailable: ${what} ${spec.name} does not work: ${asked}. ${remedy(resource.id)}`,
    )
  }
  return checked(device.id, { ...own, ...asked }, lacking(spec, device) ?? lacking(specOf(asked.capability), device))
}

function checked(device: string, mapped: Mapped, lacks: string | null): Mapped {
  if (lacks === null) return mapped
  throw new Unavailable(`capability unavailable: ${mapped.spec.name} on ${device}: ${lacks}.`)
}

/** Reads are answered before the caller gives up; writes have the device's own time. */
export const readDeadlineMs = 20_000

export function deadlineMs({ device }: Executor, isRead: boolean): number {
  const ownMs = device.timeoutSeconds * 1000
  return isRead ? Math.min(ownMs, readDeadlineMs) : ownMs
}

/** The key of something that is looked at and may be looked at again. */
export function lookKey(base: string, what: string): string {
  return `${base}:${what}:${randomUUID()}`
}
