import type { EventKind } from './event.ts'

/** One attempt, one turn, one call: the names of rows, keys and workflow ids. */
export type RunRef = { incidentId: string; attempt: number }
export type TurnRef = RunRef & { turn: number }
export type CallRef = RunRef & { turn: number; call: number }

type StepKeyParts = CallRef & { kind: string; step: string | null }

/**
 * The key of a row: `<incident>.<attempt>:<turn>:<kind>:<call>[:<step>]`. Unique in the database,
 * so that a repeated step finds its row; also the `Idempotency-Key` of the write that the row
 * announces.
 */
export function stepKey(run: RunRef, turn: number, kind: EventKind, call: number, step?: string | number): string {
  const key = `${run.incidentId}.${run.attempt}:${turn}:${kind}:${call}`
  return step === undefined ? key : `${key}:${step}`
}

/** The parts of a step key; null for any other text. `step` is all that follows the call. */
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
 * The key of another row of the call, as of `tool_finished` beside `tool_started`; null for
 * another `key`.
 */
export function siblingKey(key: string | null, kind: EventKind): string | null {
  const parts = parseStepKey(key ?? '')
  return parts && stepKey(parts, parts.turn, kind, parts.call, parts.step ?? undefined)
}

/** A call's id in rows and in the model's transcript: its turn and place in the answer. */
export function callId(turn: number, call: number): string {
  return `c${turn}_${call}`
}

/** Turn and place of a call id; null for any other text. */
export function parseCallId(id: string): { turn: number; call: number } | null {
  const [, turn, call] = /^c(\d+)_(\d+)$/.exec(id) ?? []
  return turn === undefined ? null : { turn: Number(turn), call: Number(call) }
}

/**
 * Places of code's own looks begin here, where no model's answer has one; those before the first
 * turn are of turn 0.
 */
export const firstPlaceOfCode = 1_000

/** Did code propose this call, and no model and no person? */
export function isCallOfCode(id: string): boolean {
  return (parseCallId(id)?.call ?? 0) >= firstPlaceOfCode
}

/** Sorts what belongs to calls of one answer by the places of the calls. */
export function byCall(a: { callId: string }, b: { callId: string }): number {
  return (parseCallId(a.callId)?.call ?? 0) - (parseCallId(b.callId)?.call ?? 0)
}

/** Names at Temporal. Rows and histories store them and people type them: none may change. */

/** The queue of workflows and most activities; a model's requests have `llmTaskQueue`. */
export const defaultTaskQueue = 'nightshift'

export const llmTaskQueue = (taskQueue: string): string => `${taskQueue}-llm`

/** The Schedule that starts `ProcessIncidentQueue`. */
export const queueScheduleId = 'process-incident-queue'

export const investigationId = ({ incidentId, attempt }: RunRef): string => `investigate:${incidentId}:${attempt}`

/** Incident and attempt of an investigation's id; null for any other text. */
export function parseInvestigationId(id: string): RunRef | null {
  const [, incidentId, attempt] = /^investigate:([^:]+):(\d+)$/.exec(id) ?? []
  return incidentId === undefined ? null : { incidentId, attempt: Number(attempt) }
}

/** The workflow that runs the incidents of one type: a leader and its followers. */
export const groupWorkflowId = (type: string): string => `group:${type}`

/**
 * Finds the id of an incident or approval in a pasted text: alone, in an address or in a sentence.
 * Null: none.
 */
export function idIn(text: string | null | undefined): string | null {
  return /(?<![0-9a-z])(?:inc|apr)_[0-9a-z]{26}(?![0-9a-z])/.exec(text ?? '')?.[0] ?? null
}

/** Where the page shows it. */
export function pathOfId(id: string): string {
  return id.startsWith('apr_') ? `/approvals/${id}` : `/incidents/${id}`
}
