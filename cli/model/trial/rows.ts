import { agentActor, type EventKind, type IncidentEvent } from '../../../domain/event.ts'
import { messageMark } from '../../../domain/message.ts'
import { isCallOfCode } from '../../../domain/step-key.ts'
import type { Recording } from './recording.ts'
import { type LoggedCall, readCalls } from './world.ts'

/**
 * A play's outcome. `would_write`: the log has no such write. `not_comparable`: it asked what the
 * log lacks.
 */
type PlayEnd =
  | { kind: 'ended'; word: string }
  | { kind: 'would_write'; word: string }
  | { kind: 'not_comparable'; why: string }
  | { kind: 'unanswered'; why: string }

/**
 * An investigation played again: its rows so far, as the candidate made them, and the world's
 * progress.
 */
export type Play = {
  recording: Recording
  calls: readonly LoggedCall[]
  rows: IncidentEvent[]
  /** The world is as it was after this row of the log. */
  passedSeq: number
  /** Writes that were made, by key. */
  made: Set<string>
  /** Answers to each call, counted by state and call. */
  asked: Map<string, number>
  /** Writes that the judge would have run or asked about, by key, each with the call in words. */
  proposed: Map<string, string>
  protocol: 'native' | 'json'
  turns: number
  tokens: number
  isAssumed: boolean
  end: PlayEnd | null
}

/**
 * A play before its first turn: the log's rows up to its context, and of code's looks for a
 * follower. Pure.
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
    // Where tools stand in the prompt alone, there are no definitions to send.
    protocol: opening.metadata.protocol === 'json' ? 'json' : protocol,
    turns: 0,
    tokens: 0,
    isAssumed: false,
    end: null,
  }
}

/**
 * Whether a row is of code's look before the first turn: the log's model had it, and the candidate
 * has it.
 */
function isFirstLook({ attempt, turn, metadata }: IncidentEvent, played: number): boolean {
  return attempt === played && turn === 0 && 'callId' in metadata && isCallOfCode(String(metadata.callId))
}

/** The time in the play: that of its newest row. */
export function nowOf({ rows }: Play): string {
  return rows.at(-1)?.at ?? new Date(0).toISOString()
}

type NewRow<K extends EventKind> = Pick<IncidentEvent<K>, 'kind' | 'metadata'> & {
  turn?: number | null
  at?: string
  actor?: string
}

/** Adds a row, which nobody stores. Its time is never before that of the row above it. */
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

/** Lets the world go on to this row: alerts of that time came, and people wrote what they wrote. */
export function passWorld(play: Play, seq: number): void {
  const { events } = play.recording
  for (const event of events) {
    if (event.seq <= play.passedSeq || event.seq > seq) continue
    if (event.kind === 'alert_received' || (event.kind === 'commented' && event.metadata.action === messageMark))
      addRow(play, event as NewRow<EventKind>)
  }
  play.passedSeq = Math.max(play.passedSeq, seq)
}
