import { actionOf } from '../../db/log/append.ts'
import type { Changed } from '../../domain/changed.ts'
import type { VerificationOutcome } from '../../domain/envelope.ts'
import { agentActor, type EventKind, type EventMetadata, type IncidentEvent } from '../../domain/event.ts'
import type { ResourceRef } from '../../domain/registry.ts'

/** Builds a log by hand, one row after the other, for the pure functions that fold it. */
export function logOf(...rows: IncidentEvent[]): IncidentEvent[] {
  return rows.map((row, index) => ({ ...row, seq: index + 1 }))
}

const startedAtMs = Date.parse('2026-11-21T02:00:00Z')

export function row<K extends EventKind>(
  kind: K,
  metadata: Partial<EventMetadata[K]>,
  more: { attempt?: number; atSeconds?: number; turn?: number; actor?: string } = {},
): IncidentEvent {
  return {
    id: '0',
    incidentId: 'inc_00000000000000000000000001',
    attempt: more.attempt ?? 1,
    seq: 0,
    stepKey: null,
    turn: more.turn ?? 1,
    kind,
    action: actionOf(kind),
    actor: more.actor ?? agentActor,
    detail: '',
    metadata,
    at: new Date(startedAtMs + (more.atSeconds ?? 0) * 1000).toISOString(),
    prevHash: '',
    hash: '',
  } as unknown as IncidentEvent
}

/** A row with no more of its metadata than a test is about, or with what no row has. */
export function partOfRow(kind: EventKind, metadata: object, more: Parameters<typeof row>[2] = {}): IncidentEvent {
  return row(kind, metadata as Partial<EventMetadata[EventKind]>, more)
}

/** What a model answered that proposes these calls and says nothing. */
export const answeredWith = (calls: EventMetadata['model_answered']['calls']): EventMetadata['model_answered'] => ({
  content: '',
  body: null,
  calls,
  final: null,
  problem: null,
  model: 'm',
  finishReason: 'stop',
  usage: { promptTokens: 1, completionTokens: 1 },
  durationMs: 1,
})

/** A claim that a look-up of `looked` shows. */
export const seenNominal = (seq: number, text = 'it was nominal') => ({
  kind: 'was' as const,
  text,
  quotes: [{ seq, text: '"status":"nominal"' }],
})

/** A look-up that succeeded and made these things known. */
export function looked(callId: string, things: ResourceRef[], more: { atSeconds?: number; attempt?: number } = {}) {
  return row(
    'tool_finished',
    {
      callId,
      tool: 'get_shard',
      arguments: {},
      effect: 'read',
      targets: things,
      outcome: 'done',
      result: { ok: true, data: { items: things.map(({ id }) => ({ id, status: 'nominal' })) }, meta: {} },
      body: null,
      discovered: things.map((thing) => ({ ...thing, name: thing.id, aliases: [] })),
    },
    more,
  )
}

export function wrote(callId: string, targets: ResourceRef[], more: { atSeconds?: number } = {}) {
  return row(
    'tool_started',
    {
      callId,
      tool: 'converge_shard',
      arguments: {},
      effect: 'write',
      risk: 'low',
      targets,
      actionDigest: 'd',
      approvalId: null,
    },
    more,
  )
}

/** What a write answered that it changed. */
export function changedBy(callId: string, targets: ResourceRef[], changed: Changed) {
  return row('tool_finished', {
    callId,
    tool: 'converge_shard',
    arguments: {},
    effect: 'write',
    targets,
    outcome: 'done',
    result: { ok: true, data: { changed }, meta: {} },
    body: null,
    discovered: [],
    changed,
  })
}

export function verified(callId: string, outcome: VerificationOutcome) {
  return row('verification', {
    callId,
    tool: 'converge_shard',
    targets: [],
    writeSeq: 0,
    outcome,
    postcondition: '',
    observed: '',
  })
}
