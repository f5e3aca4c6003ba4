import { actionDigest } from '../../../domain/digest.ts'
import type { IncidentEvent } from '../../../domain/event.ts'
import { toolFacts } from '../../../tools/registry.ts'
import type { Recording } from './recording.ts'

/**
 * The world of a play: the log and nothing else. A call is known by tool and canonical arguments.
 * An answer holds for its state: that of the writes made by then.
 */

/** What became of a call. `open`: it was refused, or nobody settled it. */
type Fate = 'done' | 'denied' | 'expired' | 'open'

export type LoggedCall = {
  /** The call as it ran, or was asked about. */
  key: string
  /**
   * The keys by which a model may make it: as proposed, with settled names, as a person changed it.
   */
  keys: ReadonlySet<string>
  tool: string
  isWrite: boolean
  /** The writes that were made before it, as `stateKey` writes them. */
  state: string
  fate: Fate
  /** Its rows, oldest first. */
  rows: readonly IncidentEvent[]
}

/** Names the state that these writes leave. */
export const stateKey = (made: Iterable<string>): string => [...made].sort().join(' ')

/**
 * A call's digest by its schema: absent fields have their defaults. Null where the arguments do not
 * fit.
 */
export function keyOfCall(tool: string, given: Record<string, unknown> | null): string | null {
  const parsed = given === null ? null : toolFacts.get(tool)?.input.safeParse(given)
  return parsed?.success ? actionDigest(tool, parsed.data as Record<string, unknown>) : null
}

/** Every call of the attempt that ran or was asked about, in order. Pure. */
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
 * The log's call for this one, made for the `asked`-th time in this state, from 0. Later
 * repetitions have the state's newest answer. Null: the log lacks it.
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
