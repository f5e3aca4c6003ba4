import { agentActor, type NewEvent, type NotedCode } from './event.ts'
import { formatTimeOfDay } from './format.ts'

/**
 * Decides about a page that waits while its incident is investigated. The page may be sent earlier
 * than announced, but never later.
 */

/** Seconds after which a page is sent if no run has begun for its incident. */
export const slotWithinSeconds = 60

/**
 * Why a page was sent, or (`repaired`) was not sent. `message`: a message other than the page
 * already wakes people.
 */
export type ReleaseReason =
  | ('time' | 'no_slot' | 'model' | 'approval' | 'escalated' | 'duty' | 'ended' | 'kept' | 'message')
  | 'repaired'

const words: Record<Exclude<ReleaseReason, 'repaired'>, string> = {
  time: 'the hold time is over',
  no_slot: `no run took the incident within ${slotWithinSeconds} s`,
  model: 'the model does not answer',
  approval: 'approval needed',
  escalated: 'escalated',
  duty: 'a part of Nightshift fails',
  ended: 'the run ended without a verified repair',
  kept: 'the incident is not investigated',
  message: 'another message is due',
}

/** The effect of a log row on a page that waits. `settle`: the incident's alerts decide. */
type GateStep = { do: 'release'; why: Exclude<ReleaseReason, 'repaired'> } | { do: 'settle' }

/** Returns the effect of a log row on a page that waits; null if the row has no effect. */
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
 * Facts about an incident that the agent reports as repaired. `hasHeld`: the repair was verified.
 * `isOver`: each alert has a proven end.
 */
type RepairFacts = { isRepaired: boolean; hasHeld: boolean; isOver: boolean }

/** Decides whether the page of a repaired incident is sent. `wait`: not decided yet. */
export function settleGate({ isRepaired, hasHeld, isOver }: RepairFacts): 'wait' | 'spare' | 'release' {
  if (!isRepaired) return 'wait'
  if (!hasHeld) return 'release'
  return isOver ? 'spare' : 'wait'
}

const gateCodes: readonly NotedCode[] = ['page_held', 'page_released', 'page_spared']

/** Whether a note is about a page that waited. */
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
