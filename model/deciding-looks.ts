import type { IncidentEvent } from '../domain/event.ts'
import { isUnshown, rowsOf } from '../domain/hypothesis.ts'
import type { LeaderLook, LeaderLooks } from '../domain/leader-look.ts'
import { resourceKey } from '../domain/registry.ts'
import { nameOfCall } from './shown-result.ts'

/**
 * Most reads that are listed before the repair, and most that are listed after it: few reads decide
 * an ending.
 */
const maxLooks = 5

type Look = { event: IncidentEvent<'tool_finished'>; call: LeaderLook }

/**
 * Lists the reads that decided an attempt's ending, in order. Before the first repair that held:
 * reads that the ending quotes and reads of the repaired resources. After the last such repair:
 * reads that the ending quotes. Empty if the ending quotes no read.
 */
export function decidingLooks(events: readonly IncidentEvent[], attempt: number): LeaderLooks {
  const own = events.filter((event) => event.attempt === attempt)
  const quoted = quotedBy(own)
  const looks = looksIn(own)
  const writes = heldWrites(own)
  const repaired = new Set(writes.flatMap(({ metadata }) => metadata.targets.map(resourceKey)))
  const from = writes[0]?.seq ?? Number.POSITIVE_INFINITY
  const until = writes.at(-1)?.seq ?? Number.POSITIVE_INFINITY
  const isAtRepaired = ({ event }: Look) => event.metadata.targets.some((each) => repaired.has(resourceKey(each)))
  const isQuoted = ({ event }: Look) => quoted.has(event.seq)
  if (!looks.some(isQuoted)) return { before: [], write: null, after: [] }
  return {
    before: distinct(looks.filter((each) => each.event.seq < from && (isQuoted(each) || isAtRepaired(each)))),
    write: writes.at(-1)?.metadata.tool ?? null,
    after: distinct(looks.filter((each) => each.event.seq > until && isQuoted(each))),
  }
}

function looksIn(own: readonly IncidentEvent[]): Look[] {
  return own.flatMap((event) => {
    if (event.kind !== 'tool_finished' || !event.metadata.result.ok) return []
    const { tool, effect, arguments: given } = event.metadata
    return effect === 'read' || effect === 'resolve' ? [{ event, call: { tool, arguments: given } }] : []
  })
}

function heldWrites(own: readonly IncidentEvent[]): IncidentEvent<'tool_started'>[] {
  const held = new Set(
    own.flatMap((event) =>
      event.kind === 'verification' && event.metadata.outcome === 'held' ? [event.metadata.callId] : [],
    ),
  )
  return own.flatMap((event) =>
    event.kind === 'tool_started' && event.metadata.effect === 'write' && held.has(event.metadata.callId)
      ? [event]
      : [],
  )
}

/**
 * Returns the numbers of the rows that the ending's claims quote, without claims that no row shows.
 */
function quotedBy(own: readonly IncidentEvent[]): Set<number> {
  const ending = own.findLast((event) => event.kind === 'resolved')
  if (ending?.kind !== 'resolved') return new Set()
  return new Set(ending.metadata.claims.filter((each) => !isUnshown(each)).flatMap(rowsOf))
}

function distinct(looks: readonly Look[]): LeaderLook[] {
  const named = new Map(looks.map(({ call }) => [nameOfCall(call), call]))
  return [...named.values()].slice(0, maxLooks)
}
