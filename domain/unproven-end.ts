import { inertText } from './inert-text.ts'

/** Hours after which an alert with an unproven end counts as quiet and unproven. */
export const unprovenAfterHours = 24

/**
 * Reasons why a rule stopped firing without a value that proves an end, in Grafana's spelling
 * (`grafana_state_reason`).
 */
const reasons: Record<string, string> = {
  missingseries: 'the series is missing',
  nodata: 'the rule found no data',
  error: 'the rule could not be evaluated',
  keeplast: 'the rule kept its last state without data',
  paused: 'the rule was paused',
  updated: 'the rule was changed',
  ruledeleted: 'the rule was deleted',
}

/**
 * Formats a sender's reason for an end, with an explanation of a known reason: `MissingSeries: the
 * series is missing`. An unknown reason is quoted.
 */
export function describeEndReason(reason: string): string {
  const said = wordsOf(reason).flatMap((word) => reasons[word] ?? [])
  const word = inertText(reason, 100)
  return said.length === 0 ? word : `${word}: ${said.join(', ')}`
}

/**
 * Whether the series of the alert is gone. Only facts outside the series can then show whether the
 * problem is gone too.
 */
export function isSeriesGone(reason: string): boolean {
  return wordsOf(reason).includes('missingseries')
}

const wordsOf = (reason: string): string[] => reason.toLowerCase().split(/[\s,;()]+/)

/**
 * Explains why nothing shows that an alert is over. `reason`: the sender's word for its end; null
 * if there is none.
 */
export function describeDoubt(why: string | null, reason: string | null): string {
  if (reason !== null) return `the sender reported an end that proves nothing (${describeEndReason(reason)})`
  if (why === 'crowd') return 'many alerts of the sender ended at once'
  if (why === 'foreign') return 'another sender ended it'
  if (why === 'stale') return 'the sender stopped sending'
  return 'whether the alert still fires is unknown'
}

/** Quotes in a sentence a sender's word for a state that Nightshift does not know. */
export function describeStateWord(word: string): string {
  return `${unknownState(word)}: the alert counts as firing; alert.state_words can give the state a meaning`
}

const unknownState = (word: string): string => `its state "${inertText(word, 100)}" is unknown`

export type DoubtedAlert = { endedBy: string | null; endReason: string | null; stateWord: string | null }

/** Lists doubts about the state of an alert, one sentence each. */
export function alertDoubts({ endedBy, endReason, stateWord }: DoubtedAlert): string[] {
  return [
    ...(endedBy === null ? [] : [`ended by another sender: ${endedBy}`]),
    ...(endReason === null ? [] : [`no end: ${describeEndReason(endReason)}`]),
    ...(stateWord === null ? [] : [unknownState(stateWord)]),
  ]
}
