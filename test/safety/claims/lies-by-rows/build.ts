import { sha256 } from '../../../../domain/digest.ts'
import type { EventMetadata, IncidentEvent } from '../../../../domain/event.ts'
import type { ResourceRef } from '../../../../domain/registry.ts'
import { partOfRow, row } from '../../../support/events.ts'

/**
 * Builds the rows of an attempt as the tools of a site leave them: looks, writes with what their
 * verification said, refusals.
 */
export type Scene = { incidentId: string; rows: IncidentEvent[]; bodies: Map<string, string> }

export const incidentId = 'inc_00000000000000000000000001'

type Envelope = EventMetadata['tool_finished']['result']
type Asked = { on?: ResourceRef[]; args?: Record<string, unknown>; seen?: Record<string, string> }

const done = (data: unknown): Envelope => ({ ok: true, data, meta: {} }) as unknown as Envelope
const refusedBy = (code: string, message: string, blocked: boolean): Envelope =>
  ({
    ok: false,
    error: { code, message, blocked, failed: !blocked, retryable: false, details: {} },
    meta: {},
  }) as unknown as Envelope

const shared = (seq: number, tool: string, { on = [], args = {}, seen = {} }: Asked) => ({
  callId: `c${seq}`,
  tool,
  arguments: args,
  targets: on,
  discovered: Object.entries(seen).map(([id, health]) => ({
    kind: kindOf(id),
    id,
    name: id,
    aliases: [],
    seen: true,
    health,
  })),
})

const kindOf = (id: string) =>
  id.startsWith('node-') ? 'node' : id.startsWith('host-') ? 'host' : id.startsWith('vm-') ? 'vm' : 'shard'

export const node = (id: string): ResourceRef => ({ kind: 'node', id })
export const shard = (id: string): ResourceRef => ({ kind: 'shard', id })
export const host = (id: string): ResourceRef => ({ kind: 'host', id })
export const vm = (id: string): ResourceRef => ({ kind: 'vm', id })

/** A read that answered. */
export const read = (seq: number, tool: string, data: unknown, asked: Asked = {}): IncidentEvent => ({
  ...partOfRow('tool_finished', {
    ...shared(seq, tool, asked),
    effect: 'read',
    outcome: 'done',
    result: done(data),
    body: null,
  }),
  seq,
})

/**
 * A read whose answer was too large for its row: head and tail are kept, what lies between is in no
 * store.
 */
export const readCut = (seq: number, tool: string, head: string, tail: string, asked: Asked = {}): IncidentEvent => ({
  ...partOfRow('tool_finished', {
    ...shared(seq, tool, asked),
    effect: 'read',
    outcome: 'done',
    result: { ok: true, meta: {} },
    body: { digest: sha256(`${seq}`), bytes: 182_340, head, tail },
  }),
  seq,
})

/** A read that failed: nothing was seen. */
export const readFailed = (seq: number, tool: string, message: string, asked: Asked = {}): IncidentEvent => ({
  ...partOfRow('tool_finished', {
    ...shared(seq, tool, asked),
    effect: 'read',
    outcome: 'failed',
    result: refusedBy('EXECUTION_FAILED', message, false),
    body: null,
  }),
  seq,
})

export const exec = (
  seq: number,
  on: ResourceRef,
  argv: string[],
  stdout: string,
  more: { exit_code?: number; stderr?: string; truncated?: boolean } = {},
): IncidentEvent =>
  read(
    seq,
    'exec',
    { stdout, stderr: '', exit_code: 0, truncated: false, ...more, cmd_executed: argv.join(' ') },
    { on: [on], args: { on: on.id, argv, reason: 'to look' } },
  )

/** Adds a note of the agent's own. */
export const recorded = (seq: number, detail: string): IncidentEvent => ({
  ...partOfRow('tool_finished', {
    ...shared(seq, 'add_incident_event', { on: [{ kind: 'incident', id: incidentId }], args: { detail } }),
    effect: 'record',
    outcome: 'done',
    result: done({ detail }),
    body: null,
  }),
  seq,
})

type Written = Asked & {
  held: 'held' | 'not_held' | 'unproven'
  must: string
  observed: string
  between?: IncidentEvent[]
}

/**
 * A write in its three rows: `seq` is that of its answer. A message in place of data: it failed.
 */
export function wrote(seq: number, tool: string, answer: { data: unknown } | { failed: string }, written: Written) {
  const of = shared(seq, tool, written)
  const failed = 'failed' in answer
  return [
    {
      ...partOfRow('tool_started', { ...of, effect: 'write', risk: 'low', actionDigest: `d${seq}`, approvalId: null }),
      seq: seq - (written.between?.length ?? 0) - 1,
    },
    ...(written.between ?? []),
    {
      ...partOfRow('tool_finished', {
        ...of,
        effect: 'write',
        outcome: failed ? 'failed' : 'done',
        result: failed ? refusedBy('EFFECT_FAILED', answer.failed, false) : done(answer.data),
        body: null,
      }),
      seq,
    },
    {
      ...partOfRow('verification', {
        callId: of.callId,
        tool,
        targets: of.targets,
        writeSeq: seq - (written.between?.length ?? 0) - 1,
        outcome: written.held,
        postcondition: written.must,
        observed: written.observed,
      }),
      seq: seq + 1,
    },
  ]
}

/** A call that code or a person refused: nothing ran. */
export const refused = (
  seq: number,
  tool: string,
  asked: Asked,
  { code, reason, hint = null }: { code: string; reason: string; hint?: string | null },
): IncidentEvent => ({
  ...partOfRow('call_judged', {
    ...shared(seq, tool, asked),
    verdict: 'refuse',
    code,
    reason,
    hint,
    effect: 'write',
    risk: 'medium',
    actionDigest: `d${seq}`,
    policyVersion: 'p',
    foldedSeq: seq - 1,
    approvalId: null,
  }),
  seq,
})

export const alerted = (seq: number, labels: Record<string, string>): IncidentEvent => ({
  ...partOfRow('alert_received', { fingerprint: 'f', source: 'alertmanager', status: 'firing', count: 1, labels }),
  seq,
})

/** Writes a person's message to the agent. */
export const told = (seq: number, text: string): IncidentEvent => ({
  ...row('commented', { text, confidence: null, action: 'told' }, { actor: 'user:anna' }),
  seq,
})

/** The rows of an attempt in their order, behind the context that it began with. */
export function scene(context: Record<string, unknown>, ...rows: (IncidentEvent | IncidentEvent[])[]): Scene {
  const text = JSON.stringify({ hint: null, ...context })
  const digest = sha256(text)
  const body = { digest, bytes: text.length, head: text.slice(0, 1200), tail: text.slice(-600) }
  const opening = { ...partOfRow('context_assembled', { context: body, hintFrom: null }), seq: 3 }
  return {
    incidentId,
    rows: [opening, ...rows.flat()].sort((a, b) => a.seq - b.seq),
    bodies: new Map([[digest, text]]),
  }
}
