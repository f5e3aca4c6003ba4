import { inertText } from './inert-text.ts'

/** An alert with an unproven end counts as quiet, unproven after this time without another word. */
export const unprovenAfterHours = 24

/**
 * Grafana's words for a rule that stopped firing without a value that shows it
 * (`grafana_state_reason`), in its spelling.
 */
const reasons: Record<string, string> = {
  missingseries: 'its series is missing',
  nodata: 'its rule found no data',
  error: 'its rule could not be evaluated',
  keeplast: 'its rule kept its last state without data',
  paused: 'its rule was paused',
  updated: 'its rule was changed',
  ruledeleted: 'its rule was deleted',
}

/** `MissingSeries: its series is missing`, for each of several words; an unknown one is quoted. */
export function describeEndReason(reason: string): string {
  const said = wordsOf(reason).flatMap((word) => reasons[word] ?? [])
  const word = inertText(reason, 100)
  return said.length === 0 ? word : `${word}: ${said.join(', ')}`
}

/** Its series is gone: without other facts nobody can find out whether the trouble went with it. */
export function isSeriesGone(reason: string): boolean {
  return wordsOf(reason).includes('missingseries')
}

const wordsOf = (reason: string): string[] => reason.toLowerCase().split(/[\s,;()]+/)

/** Why nothing shows that an alert is over. `reason`: its sender's word, if it gave one. */
export function describeDoubt(why: string | null, reason: string | null): string {
  if (reason !== null) return `its sender gave an end that proves nothing (${describeEndReason(reason)})`
  if (why === 'crowd') return 'many alerts of its sender ended at once'
  if (why === 'foreign') return 'another sender ended it'
  if (why === 'stale') return 'its sender fell silent'
  return 'nobody knows whether it goes on'
}

/** A word for the state of an alert that nobody knows, in a sentence. */
export function describeStateWord(word: string): string {
  return `${unknownState(word)}: it counts as firing, and alert.state_words can say what it means`
}

const unknownState = (word: string): string => `nobody knows its state "${inertText(word, 100)}"`

export type DoubtedAlert = { endedBy: string | null; endReason: string | null; stateWord: string | null }

/** What keeps the state of an alert from being a fact, a sentence each. */
export function alertDoubts({ endedBy, endReason, stateWord }: DoubtedAlert): string[] {
  return [
    ...(endedBy === null ? [] : [`ended by another sender: ${endedBy}`]),
    ...(endReason === null ? [] : [`no end: ${describeEndReason(endReason)}`]),
    ...(stateWord === null ? [] : [unknownState(stateWord)]),
  ]
}
