import { formatMinute } from './format.ts'
import type { ResourceRef } from './registry.ts'

/**
 * A stop: the agent's writes in incidents of a type, by one tool or all (null), on one resource or
 * all (null).
 */
export type StopScope = { type: string; tool: string | null; resource: ResourceRef | null }

/**
 * A kind of write that a person stopped for the whole site. `until`: null where somebody has to
 * resume it.
 */
export type KindStop = StopScope & { id: string; at: string; until: string | null; by: string; reason: string }

/** As the audit names it: the pair, or its type alone. */
export const stopName = ({ type, tool }: Pick<StopScope, 'type' | 'tool'>): string => `${type} ${tool ?? '*'}`

/** `vm_start in incidents of type vm_stopped, on vm:vm-101`. */
export function nameScope({ type, tool, resource }: StopScope): string {
  return `${tool ?? 'every write'} in incidents of type ${type}${resource ? `, on ${resource.kind}:${resource.id}` : ''}`
}

/** All that a row gives: `verify` holds it against the audit. */
export function describeStopTerms({ until, ...scope }: StopScope & Pick<KindStop, 'until'>): string {
  return `Stops ${nameScope(scope)}, ${describeEnd(until)}`
}

type StoredStop = { incidentType: string; tool: string | null; resourceKind: string | null; resourceId: string | null }

export function scopeOfRow({ incidentType: type, tool, resourceKind: kind, resourceId: id }: StoredStop): StopScope {
  return { type, tool, resource: kind === null || id === null ? null : ({ kind, id } as ResourceRef) }
}

/** The person who stopped it, until when and why, for people and for the model. */
export function describeStop({ by, until, reason }: Pick<KindStop, 'by' | 'until' | 'reason'>): string {
  return `stopped by ${by} ${describeEnd(until)}: ${reason}`
}

const describeEnd = (until: string | null): string => (until ? `until ${formatMinute(until)}` : 'until it is resumed')
