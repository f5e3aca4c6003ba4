import type { ScenarioName } from '../../../../cli/lab/endings.ts'
import type { Claim } from '../../../../domain/claim.ts'
import type { IncidentEvent } from '../../../../domain/event.ts'
import type { ResourceRef } from '../../../../domain/registry.ts'
import { alerted, node, read, type Scene, scene, shard, wrote } from '../lies-by-rows/build.ts'

/** An honest ending of a scenario of the lab, over rows as its tools answer. */
export type LabEnding = {
  scenario: ScenarioName
  scene: Scene
  tool: 'resolve_incident' | 'escalate_incident'
  /** The outcome of a resolution, or the category of an escalation. */
  as: string
  text: string
  claims: Claim[]
}

type Rows = (IncidentEvent | IncidentEvent[])[]
type Told = { text: string; claims: Claim[] }

/** One scenario from its alert to its ending. */
export function played(
  scenario: ScenarioName,
  { alert, about }: { alert: Record<string, unknown> & { name: string }; about: ResourceRef },
  rows: Rows,
  ended: { resolved: string } | { escalated: string },
  told: Told,
): LabEnding {
  const incident = { id: 'inc_00000000000000000000000001', type: scenario, severity: 'critical', resource: about }
  const labels = { alertname: alert.name, [about.kind]: about.id, severity: 'critical' }
  const context = { incident, alerts: [{ status: 'firing', labels, ...alert }] }
  const isResolved = 'resolved' in ended
  return {
    scenario,
    scene: scene(context, alerted(1, labels), ...rows),
    tool: isResolved ? 'resolve_incident' : 'escalate_incident',
    as: isResolved ? ended.resolved : ended.escalated,
    ...told,
  }
}

/** A node as the platform describes it, with no more than what an ending is about. */
export function nodeLike(id: string, status: string, reason: string | null, more: Record<string, unknown> = {}) {
  const [, role = 'web', region = 'osl'] = id.split('-')
  const of = { shard: `${role}-${region}-1`, region, role: role === 'db' ? 'replica' : 'web' }
  const quota = role === 'db' ? 268_435_456 : 4_194_304
  return { id, ...of, hostname: `${id}.${region}.lab.internal`, status, reason, diskQuotaBytes: quota, ...more }
}

export const lookedAt = (seq: number, seen: ReturnType<typeof nodeLike>): IncidentEvent =>
  read(seq, 'get_node', seen, { on: [node(seen.id)], args: { id: seen.id }, seen: { [seen.id]: seen.status } })

/**
 * A converge that changed these things on one node; all nodes are nominal afterwards, or what is
 * observed says otherwise.
 */
export function converged(seq: number, shardId: string, changed: string[], notHeld?: string): IncidentEvent[] {
  return wrote(
    seq,
    'converge_shard',
    { data: { detail: changed.join('; '), changed } },
    {
      on: [shard(shardId)],
      args: { id: shardId, reason: 'to apply what is desired' },
      held: notHeld ? 'not_held' : 'held',
      must: 'every node of the shard is nominal',
      observed: notHeld ?? `all 2 nodes of ${shardId} are nominal`,
    },
  )
}

/** A write through the agent of a node. */
export const wroteOn = (
  seq: number,
  tool: string,
  on: string,
  data: Record<string, unknown>,
  proof: { must: string; observed: string; held?: 'held' | 'unproven'; args?: Record<string, unknown> },
): IncidentEvent[] =>
  wrote(
    seq,
    tool,
    { data: { detail: `${tool} on ${on} is done`, ...data, approval_status: 'granted' } },
    {
      on: [node(on)],
      args: { on, ...proof.args },
      held: proof.held ?? 'held',
      must: proof.must,
      observed: proof.observed,
    },
  )

export const readOn = (seq: number, tool: string, on: string, data: unknown, args: Record<string, unknown> = {}) =>
  read(seq, tool, data, { on: [node(on)], args: { on, ...args } })

export const alertIs = (seq: number, name: string, about: ResourceRef, status: 'firing' | 'resolved'): IncidentEvent =>
  read(
    seq,
    'active_alerts',
    {
      items: [
        {
          name,
          status,
          labels: { [about.kind]: about.id },
          startsAt: '2026-11-25T10:00:00Z',
          endsAt: status === 'resolved' ? '2026-11-25T10:09:00Z' : null,
        },
      ],
    },
    { on: [about], args: { resource: about.id } },
  )

/** Values of a query at one time. */
export const values = (seq: number, promql: string, found: { value: number; labels?: object; unit?: string }[]) =>
  read(
    seq,
    'query_metrics',
    {
      source: 'lab',
      isEmpty: found.length === 0,
      summary: { at: '2026-11-25T10:05:00Z', promql, seriesFound: found.length, values: found },
      isPartial: false,
    },
    { args: { promql, window: 'now' } },
  )
