import { agentActor, type EventKind, type IncidentEvent } from '../../../domain/event.ts'
import { messageMark } from '../../../domain/message.ts'
import { isCallOfCode } from '../../../domain/step-key.ts'
import type { Recording } from './recording.ts'
import { type LoggedCall, readCalls } from './world.ts'

/**
 * The outcome of a trial run. `would_write`: the log does not contain the proposed write.
 * `not_comparable`: the log has no result for a call.
 */
type PlayEnd =
  | { kind: 'ended'; word: string }
  | { kind: 'would_write'; word: string }
  | { kind: 'not_comparable'; why: string }
  | { kind: 'unanswered'; why: string }

/**
 * A trial run, which repeats an investigation with another model: the rows that the tried model has
 * made, and the row of the log up to which its world has advanced.
 */
export type Play = {
  recording: Recording
  calls: readonly LoggedCall[]
  rows: IncidentEvent[]
  /** Number of a row in the log. The trial run has all alerts and messages up to this row. */
  passedSeq: number
  /** Keys of the writes that were made in the trial run. */
  made: Set<string>
  /** Number of results that each call got, by the key of its state and call. */
  asked: Map<string, number>
  /**
   * Descriptions of the proposed writes that the judge would have run or sent to a person for
   * approval, by key.
   */
  proposed: Map<string, string>
  protocol: 'native' | 'json'
  turns: number
  tokens: number
  isAssumed: boolean
  end: PlayEnd | null
}

/**
 * Returns a trial run before its first turn: the log's rows up to the first prompt, and the reads
 * that code made before the first turn. Pure.
 */
export function beginPlay(recording: Recording, protocol: 'native' | 'json'): Play {
  const { opening, events } = recording
  return {
    recording,
    calls: readCalls(recording),
    rows: events.filter((event) => event.seq <= opening.seq || isFirstLook(event, opening.attempt)),
    passedSeq: opening.seq,
    made: new Set(),
    asked: new Map(),
    proposed: new Map(),
    // Keeps the JSON protocol, because its log has no tool definitions to send.
    protocol: opening.metadata.protocol === 'json' ? 'json' : protocol,
    turns: 0,
    tokens: 0,
    isAssumed: false,
    end: null,
  }
}

/**
 * Whether a row belongs to the reads that code made before the first turn. Both models get these
 * reads.
 */
function isFirstLook({ attempt, turn, metadata }: IncidentEvent, played: number): boolean {
  return attempt === played && turn === 0 && 'callId' in metadata && isCallOfCode(String(metadata.callId))
}

/** Returns the time in the trial run, which is the time of its newest row. */
export function nowOf({ rows }: Play): string {
  return rows.at(-1)?.at ?? new Date(0).toISOString()
}

type NewRow<K extends EventKind> = Pick<IncidentEvent<K>, 'kind' | 'metadata'> & {
  turn?: number | null
  at?: string
  actor?: string
}

/** Adds a row to the trial run. The time of a row is never before the time of the previous row. */
export function addRow<K extends EventKind>(play: Play, row: NewRow<K>): IncidentEvent<K> {
  const { incident, attempt } = play.recording
  const before = nowOf(play)
  const at = row.at !== undefined && row.at > before ? row.at : before
  const seq = (play.rows.at(-1)?.seq ?? 0) + 1
  const added = {
    id: String(seq),
    incidentId: incident.id,
    attempt,
    seq,
    stepKey: null,
    turn: row.turn ?? null,
    kind: row.kind,
    action: 'investigated',
    actor: row.actor ?? agentActor,
    detail: '',
    metadata: row.metadata,
    at,
    prevHash: '',
    hash: '',
  } as unknown as IncidentEvent<K>
  play.rows.push(added as IncidentEvent)
  return added
}

/** Adds the alerts and the messages of people up to row `seq` of the log. */
export function passWorld(play: Play, seq: number): void {
  const { events } = play.recording
  for (const event of events) {
    if (event.seq <= play.passedSeq || event.seq > seq) continue
    if (event.kind === 'alert_received' || (event.kind === 'commented' && event.metadata.action === messageMark))
      addRow(play, event as NewRow<EventKind>)
  }
  play.passedSeq = Math.max(play.passedSeq, seq)
}
