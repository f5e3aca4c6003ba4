import { formatMinute } from './format.ts'
import type { ResourceRef } from './registry.ts'

/**
 * The scope of a stop of the agent's writes: incidents of a type, one tool (null: all tools), one
 * resource (null: all resources).
 */
export type StopScope = { type: string; tool: string | null; resource: ResourceRef | null }

/**
 * A person's stop of a kind of write, for the whole installation. `until`: null if the stop lasts
 * until somebody resumes the writes.
 */
export type KindStop = StopScope & { id: string; at: string; until: string | null; by: string; reason: string }

/** Names a stop for the audit log: `vm_stopped vm_start`, or `vm_stopped *` for all tools. */
export const stopName = ({ type, tool }: Pick<StopScope, 'type' | 'tool'>): string => `${type} ${tool ?? '*'}`

/** Formats the scope of a stop: `vm_start in incidents of type vm_stopped, on vm:vm-101`. */
export function nameScope({ type, tool, resource }: StopScope): string {
  return `${tool ?? 'every write'} in incidents of type ${type}${resource ? `, on ${resource.kind}:${resource.id}` : ''}`
}

/** Describes all terms of a stop. The command `verify` compares the text with the audit log. */
export function describeStopTerms({ until, ...scope }: StopScope & Pick<KindStop, 'until'>): string {
  return `Stops ${nameScope(scope)}, ${describeEnd(until)}`
}

type StoredStop = { incidentType: string; tool: string | null; resourceKind: string | null; resourceId: string | null }

export function scopeOfRow({ incidentType: type, tool, resourceKind: kind, resourceId: id }: StoredStop): StopScope {
  return { type, tool, resource: kind === null || id === null ? null : ({ kind, id } as ResourceRef) }
}

/** Describes who stopped a kind of write, until when and why, for people and for the model. */
export function describeStop({ by, until, reason }: Pick<KindStop, 'by' | 'until' | 'reason'>): string {
  return `stopped by ${by} ${describeEnd(until)}: ${reason}`
}

const describeEnd = (until: string | null): string => (until ? `until ${formatMinute(until)}` : 'until it is resumed')
