import { refusedEnvelope } from '../../domain/envelope.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import type { Envelope } from '../../domain/tool.ts'
import type { Entry } from '../transcript.ts'
import type { Answer, Judged, MeasuredCall } from './judge.ts'

/** A scripted world: one incident as the product shows it, what was said in it before, and what a call is answered. */
export type Probe = {
  name: string
  /** What is measured, for people. */
  about: string
  /** `given`: the protocol that the site uses. */
  protocol: 'given' | 'json'
  /** Whose tools and lines of the prompt the model gets. */
  kind: InventoryKind
  context: Record<string, unknown>
  said: Entry[]
  /** What the calls of the first answer are answered. With it the model is asked a second time. */
  world?(call: MeasuredCall): unknown
  /** Pure: one answer for each time the model was asked. */
  judge(answers: readonly Answer[]): Judged
}

export const incidentId = 'inc_01jdemo0000000000000000001'
const startsAt = '2026-11-21T01:43:00Z'

/** The incident and its one alert, in the form that an investigation begins with. */
export function contextOf(about: {
  type: string
  title: string
  kind: InventoryKind
  id: string
  labels?: Record<string, string>
  more?: Record<string, unknown>
}): Record<string, unknown> {
  const { type, title, kind, id, labels = {}, more = {} } = about
  return {
    incident: { id: incidentId, type, severity: 'critical', title, resource: { kind, id }, status: 'investigating' },
    alerts: [
      {
        name: type,
        status: 'firing',
        labels: { alertname: type, [kind]: id, ...labels },
        annotations: { summary: title },
        startsAt,
        count: 1,
      },
    ],
    rule: null,
    changes: [],
    resource: { kind, id },
    neighbours: [],
    activeAlerts: [],
    earlierAttempts: [],
    notes: [],
    cameBack: null,
    precedents: [],
    hint: null,
    ...more,
  }
}

export type Step = { tool: string; given: Record<string, unknown>; result: Envelope; say?: string }

/** Calls that were made one after the other, as the transcript shows them. */
export function told(steps: readonly Step[]): Entry[] {
  return steps.flatMap(({ tool, given, result, say = '' }, index): Entry[] => {
    const id = `call_${index + 1}`
    return [
      { kind: 'answer', content: say, calls: [{ id, tool, arguments: given, problem: null }] },
      { kind: 'result', callId: id, envelope: { ...result, meta: { tool, ...result.meta } }, body: null },
    ]
  })
}

export function found(seq: number, data: unknown, more: Record<string, unknown> = {}): Envelope {
  return { ok: true, data, meta: { seq, ...more } }
}

export function refused(seq: number, refusal: Parameters<typeof refusedEnvelope>[0]): Envelope {
  return { ...refusedEnvelope(refusal), meta: { seq } }
}

export function verified(outcome: 'held' | 'open', observed: string, seq: number): Record<string, unknown> {
  return { verification: { outcome, postcondition: 'every node of the shard is nominal', observed, seq } }
}

/** The world of several probes: a shard whose replica is behind, and what two looks at it say. */
export const lagging = contextOf({
  type: 'replication_lag',
  title: 'The replica of shard db-fra-2 is 940 s behind',
  kind: 'shard',
  id: 'db-fra-2',
  labels: { node: 'node-db-fra-2b' },
})
export const nodesOf = (status: string, reason: string | null) => ({
  items: [
    {
      id: 'node-db-fra-2a',
      hostname: 'db-fra-2a',
      ip: '10.8.2.1',
      shard: 'db-fra-2',
      role: 'primary',
      status: 'nominal',
    },
    { id: 'node-db-fra-2b', hostname: 'db-fra-2b', ip: '10.8.2.2', shard: 'db-fra-2', role: 'replica', status, reason },
  ],
})
export const shardSeen: Step = {
  tool: 'get_shard',
  given: { id: 'db-fra-2' },
  result: found(11, { id: 'db-fra-2', region: 'fra', kind: 'database', status: 'critical' }),
}
export const nodesSeen: Step = {
  tool: 'list_nodes_by_shard',
  given: { shard_id: 'db-fra-2' },
  result: found(14, nodesOf('critical', 'replication is 940 s behind')),
}
export const converge = { id: 'db-fra-2', reason: 'node-db-fra-2b is 940 s behind.' }
