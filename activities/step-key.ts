import type { EventKind } from '../domain/event.ts'

export type Run = { incidentId: string; attempt: number }
export type Turn = Run & { turn: number }
export type CallPlace = Run & { turn: number; call: number }

/** Design section 1.6: `<incident>.<attempt>:<turn>:<kind>:<call>[:<step>]`, unique in the database, sent on as Idempotency-Key. */
export function stepKey(run: Run, turn: number, kind: EventKind, call: number, step?: string | number): string {
  const key = `${run.incidentId}.${run.attempt}:${turn}:${kind}:${call}`
  return step === undefined ? key : `${key}:${step}`
}

/** The id a call has in rows and in the model's transcript: its turn and its place in the answer. */
export function callId(turn: number, call: number): string {
  return `c${turn}_${call}`
}
