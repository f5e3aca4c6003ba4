import { agentActor, type NewEvent, type NotedCode } from './event.ts'
import { formatTimeOfDay } from './format.ts'

/**
 * The fate of a page that waits while its incident is investigated. It may leave earlier than said,
 * never later.
 */

/** The page of an incident that no run has taken up for so long leaves. */
export const slotWithinSeconds = 60

/** The reason a page left, or stayed (`repaired`). `message`: another message wakes people. */
export type ReleaseReason =
  | ('time' | 'no_slot' | 'model' | 'approval' | 'escalated' | 'duty' | 'ended' | 'kept' | 'message')
  | 'repaired'

const words: Record<Exclude<ReleaseReason, 'repaired'>, string> = {
  time: 'its time is over',
  no_slot: `no run took the incident up within ${slotWithinSeconds} s`,
  model: 'the model does not answer',
  approval: 'approval needed',
  escalated: 'escalated',
  duty: 'a duty of Nightshift is lost',
  ended: 'it ended without a repair that held',
  kept: 'it is not investigated',
  message: 'there is more to tell',
}

/** The meaning of a log's row for a waiting page. `settle`: its alerts decide on it. */
type GateStep = { do: 'release'; why: Exclude<ReleaseReason, 'repaired'> } | { do: 'settle' }

/** Null for rows that mean nothing to it. */
export function stepOfGate(event: NewEvent): GateStep | null {
  switch (event.kind) {
    case 'approval_requested':
      return { do: 'release', why: 'approval' }
    case 'model_failed':
      return { do: 'release', why: 'model' }
    case 'escalated':
      return { do: 'release', why: 'escalated' }
    case 'budget_ended':
    case 'cancelled':
      return { do: 'release', why: 'ended' }
    case 'resolved':
      return event.actor === agentActor && event.metadata.outcome === 'repaired'
        ? { do: 'settle' }
        : { do: 'release', why: 'ended' }
    case 'noted':
      if (event.metadata.code === 'kept') return { do: 'release', why: 'kept' }
      return event.metadata.code === 'run_lost' ? { do: 'release', why: 'ended' } : null
    default:
      return null
  }
}

/**
 * Facts of an incident that its agent calls repaired. `isOver`: each alert ended, by a word that
 * proves it.
 */
type RepairFacts = { isRepaired: boolean; hasHeld: boolean; isOver: boolean }

/** Whether a repaired incident's page is needed. `wait`: the alert's end or time will show. */
export function settleGate({ isRepaired, hasHeld, isOver }: RepairFacts): 'wait' | 'spare' | 'release' {
  if (!isRepaired) return 'wait'
  if (!hasHeld) return 'release'
  return isOver ? 'spare' : 'wait'
}

const gateCodes: readonly NotedCode[] = ['page_held', 'page_released', 'page_spared']

/** Is such a row about a page that waited? */
export function isOfGate(code: NotedCode): boolean {
  return gateCodes.includes(code)
}

export function describeHeld(until: string): string {
  return `Page held until ${formatTimeOfDay(until, 'utc')} UTC`
}

export function describeReleased(why: Exclude<ReleaseReason, 'repaired'>): string {
  return `Page released: ${words[why]}`
}

export function describeSpared(seconds: number): string {
  return `No page: repaired in ${Math.round(seconds)} s, alert ended`
}
