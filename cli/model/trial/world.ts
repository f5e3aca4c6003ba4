import { actionDigest } from '../../../domain/digest.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import { toolFacts } from '../../../tools/registry.ts'
import type { Recording } from './recording.ts'

/**
 * The environment of a trial run, which consists only of the log. A call is identified by tool and
 * canonical arguments. A result is valid only in one state: after the same set of writes.
 */

/** The result of a call. `open`: it was refused, or is not decided. */
type Fate = 'done' | 'denied' | 'expired' | 'open'

export type LoggedCall = {
  /** The key of the call with the arguments with which it ran, or else was last proposed. */
  key: string
  /** The keys of the call as proposed, with resolved names, or as a person edited it. */
  keys: ReadonlySet<string>
  tool: string
  isWrite: boolean
  /** The writes that were made before the call, in the format of `stateKey`. */
  state: string
  fate: Fate
  /** The rows of the call, oldest first. */
  rows: readonly IncidentEvent[]
}

/** Returns a key for the state after these writes. */
export const stateKey = (made: Iterable<string>): string => [...made].sort().join(' ')

/**
 * Returns the digest of a call with the defaults of its schema for absent fields. Null if the
 * arguments do not fit the schema.
 */
export function keyOfCall(tool: string, given: Record<string, unknown> | null): string | null {
  const parsed = given === null ? null : toolFacts.get(tool)?.input.safeParse(given)
  return parsed?.success ? actionDigest(tool, parsed.data as Record<string, unknown>) : null
}

/** Lists every call of the attempt that ran or for which approval was requested, in order. Pure. */
export function readCalls({ events, attempt }: Pick<Recording, 'events' | 'attempt'>): LoggedCall[] {
  const byCall = Map.groupBy(
    events.filter((event) => event.attempt === attempt && callIdOf(event) !== null),
    (event) => callIdOf(event) as string,
  )
  const made = new Set<string>()
  const calls: LoggedCall[] = []
  for (const rows of byCall.values()) {
    const call = readCall(rows, stateKey(made))
    if (!call) continue
    calls.push(call)
    if (call.isWrite && call.fate === 'done') made.add(call.key)
  }
  return calls
}

function readCall(rows: readonly IncidentEvent[], state: string): LoggedCall | null {
  const judged = rows.filter((row) => row.kind === 'call_judged')
  const last = judged.at(-1)?.metadata
  if (!last || judged.every(({ metadata: { verdict } }) => verdict === 'refuse')) return null
  const started = rows.find((row) => row.kind === 'tool_started')?.metadata
  const ran = started ? actionDigest(started.tool, started.arguments) : null
  const proposed = judged.flatMap(({ metadata }) => keyOfCall(metadata.tool, metadata.arguments) ?? [])
  const key = ran ?? proposed.at(-1)
  if (key === undefined) return null
  return {
    key,
    keys: new Set([key, ...proposed, ...judged.map(({ metadata }) => metadata.actionDigest)]),
    tool: last.tool,
    isWrite: (started ?? last).effect === 'write',
    state,
    fate: fateOf(rows),
    rows,
  }
}

function fateOf(rows: readonly IncidentEvent[]): Fate {
  if (rows.some(({ kind }) => kind === 'tool_finished')) return 'done'
  if (rows.some((row) => row.kind === 'approval_decided' && row.metadata.decision === 'deny')) return 'denied'
  return rows.some(({ kind }) => kind === 'approval_expired') ? 'expired' : 'open'
}

function callIdOf({ metadata }: IncidentEvent): string | null {
  return 'callId' in metadata && typeof metadata.callId === 'string' ? metadata.callId : null
}

/**
 * Finds the log's result for a call that is made for the `asked`-th time in this state, from 0.
 * Later repetitions get the newest result in this state. Null without a result in the log.
 */
export function findLogged(
  calls: readonly LoggedCall[],
  keys: readonly string[],
  state: string,
  asked: number,
): LoggedCall | null {
  const same = calls.filter(
    (call) => call.state === state && call.fate !== 'open' && keys.some((key) => call.keys.has(key)),
  )
  return same[Math.min(asked, same.length - 1)] ?? null
}
