import type { EventKind } from './event.ts'

/** One attempt at an incident, one turn of it, one call of a turn: what rows, keys and workflow ids are named by. */
export type RunRef = { incidentId: string; attempt: number }
export type TurnRef = RunRef & { turn: number }
export type CallRef = RunRef & { turn: number; call: number }

type StepKeyParts = CallRef & { kind: string; step: string | null }

/**
 * The key of a row: `<incident>.<attempt>:<turn>:<kind>:<call>[:<step>]`. It is unique in the database, so that a step that runs
 * again finds its row, and it is the `Idempotency-Key` of the write that the row announces.
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

/** The key of another row of the same call, as of the `tool_finished` beside a `tool_started`; null where `key` is no step key. */
export function siblingKey(key: string | null, kind: EventKind): string | null {
  const parts = parseStepKey(key ?? '')
  return parts && stepKey(parts, parts.turn, kind, parts.call, parts.step ?? undefined)
}

/** The id that a call has in rows and in the model's transcript: its turn and its place in the answer. */
export function callId(turn: number, call: number): string {
  return `c${turn}_${call}`
}

/** Turn and place of a call id; null for any other text. */
export function parseCallId(id: string): { turn: number; call: number } | null {
  const [, turn, call] = /^c(\d+)_(\d+)$/.exec(id) ?? []
  return turn === undefined ? null : { turn: Number(turn), call: Number(call) }
}

/** Looks that code takes by itself have places from here on, which no answer of a model has; those before its first turn are of turn 0. */
export const firstPlaceOfCode = 1_000

/** Did code propose this call, and no model and no person? */
export function isCallOfCode(id: string): boolean {
  return (parseCallId(id)?.call ?? 0) >= firstPlaceOfCode
}

/** Sorts what belongs to calls of one answer by the places of the calls. */
export function byCall(a: { callId: string }, b: { callId: string }): number {
  return (parseCallId(a.callId)?.call ?? 0) - (parseCallId(b.callId)?.call ?? 0)
}

/** Names at Temporal. They are stored in rows and histories, and people type them: none may change. */

/** Where workflows and most activities are polled for; requests to a model have a queue beside it (`llmTaskQueue`). */
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

/** The id of an incident or an approval in a text that was pasted: by itself, or inside an address or a sentence. Null without one. */
export function idIn(text: string | null | undefined): string | null {
  return /(?<![0-9a-z])(?:inc|apr)_[0-9a-z]{26}(?![0-9a-z])/.exec(text ?? '')?.[0] ?? null
}

/** Where the page shows it. */
export function pathOfId(id: string): string {
  return id.startsWith('apr_') ? `/approvals/${id}` : `/incidents/${id}`
}
