import type { EventKind } from './event.ts'

/**
 * References to an attempt, a turn and a call. Names of rows, keys and workflow ids are built from
 * them.
 */
export type RunRef = { incidentId: string; attempt: number }
export type TurnRef = RunRef & { turn: number }
export type CallRef = RunRef & { turn: number; call: number }

type StepKeyParts = CallRef & { kind: string; step: string | null }

/**
 * Builds the key of a log row: `<incident>.<attempt>:<turn>:<kind>:<call>[:<step>]`. The key is
 * unique in the database, so that a step that is repeated finds its row. The key is also the
 * `Idempotency-Key` of the write that the row announces.
 */
export function stepKey(run: RunRef, turn: number, kind: EventKind, call: number, step?: string | number): string {
  const key = `${run.incidentId}.${run.attempt}:${turn}:${kind}:${call}`
  return step === undefined ? key : `${key}:${step}`
}

/** Splits a step key; null for any other text. `step`: the part after the call. */
export function parseStepKey(key: string): StepKeyParts | null {
  const [, incidentId, attempt, turn, kind, call, step] =
    /^([^.:]+)\.(\d+):(\d+):([a-z_]+):(\d+)(?::(.+))?$/.exec(key) ?? []
  if (incidentId === undefined || kind === undefined) return null
  return {
    incidentId,
    attempt: Number(attempt),
    turn: Number(turn),
    kind,
    call: Number(call),
    step: step ?? null,
  }
}

/**
 * Builds the key of another row of a call, such as `tool_finished` from `tool_started`. Null if
 * `key` is not a step key.
 */
export function siblingKey(key: string | null, kind: EventKind): string | null {
  const parts = parseStepKey(key ?? '')
  return parts && stepKey(parts, parts.turn, kind, parts.call, parts.step ?? undefined)
}

/**
 * Builds the id of a call, for rows and for the model's transcript, from its turn and its place in
 * the turn.
 */
export function callId(turn: number, call: number): string {
  return `c${turn}_${call}`
}

/** Returns the turn and the place from the id of a call; null for any other text. */
export function parseCallId(id: string): { turn: number; call: number } | null {
  const [, turn, call] = /^c(\d+)_(\d+)$/.exec(id) ?? []
  return turn === undefined ? null : { turn: Number(turn), call: Number(call) }
}

/**
 * The first place for reads that code makes, higher than any place in a model's response. Reads
 * before the first turn belong to turn 0.
 */
export const firstPlaceOfCode = 1_000

/** Whether code proposed this call, and not a model or a person. */
export function isCallOfCode(id: string): boolean {
  return (parseCallId(id)?.call ?? 0) >= firstPlaceOfCode
}

/** Sorts entries of one turn by the places of their calls. */
export function byCall(a: { callId: string }, b: { callId: string }): number {
  return (parseCallId(a.callId)?.call ?? 0) - (parseCallId(b.callId)?.call ?? 0)
}

/** Names at Temporal. A name must never change: rows and histories store it, and people type it. */

/** The queue of workflows and of most activities. */
export const defaultTaskQueue = 'nightshift'

export const llmTaskQueue = (taskQueue: string): string => `${taskQueue}-llm`

/**
 * The queue of steps that wait for a slot of a model. In the queue of model requests, waiting steps
 * would delay requests.
 */
export const lineTaskQueue = (taskQueue: string): string => `${taskQueue}-line`

/** The id of the Schedule that starts `ProcessIncidentQueue`. */
export const queueScheduleId = 'process-incident-queue'

export const investigationId = ({ incidentId, attempt }: RunRef): string => `investigate:${incidentId}:${attempt}`

/** Returns the incident and attempt from the id of an investigation; null for any other text. */
export function parseInvestigationId(id: string): RunRef | null {
  const [, incidentId, attempt] = /^investigate:([^:]+):(\d+)$/.exec(id) ?? []
  return incidentId === undefined ? null : { incidentId, attempt: Number(attempt) }
}

/** The id of the workflow that runs the incidents of one type: a leader and its followers. */
export const groupWorkflowId = (type: string): string => `group:${type}`

/**
 * Finds the id of an incident or approval in a pasted text: alone, in an address or in a sentence.
 * Null if the text contains none.
 */
export function idIn(text: string | null | undefined): string | null {
  return /(?<![0-9a-z])(?:inc|apr)_[0-9a-z]{26}(?![0-9a-z])/.exec(text ?? '')?.[0] ?? null
}

/** Returns the path of the page about an incident or approval. */
export function pathOfId(id: string): string {
  return id.startsWith('apr_') ? `/approvals/${id}` : `/incidents/${id}`
}
