import type { Alert } from '../domain/alert.ts'
import { maxWordChars } from '../domain/alert.ts'
import { foldWord, type StateMeaning, type StateRule, stateMeanings } from '../domain/state-words.ts'
import { capChars, fieldText, isFields, type RawFields } from './fields.ts'
import { stateSenders } from './state-senders.ts'

/** The installation's own words for states, and the name of the token that sent the body. */
export type SiteWords = { rules: readonly StateRule[]; token: string | null }
export const noSiteWords: SiteWords = { rules: [], token: null }

/** State words in the documented form for scripts (`generic`). */
const ownWords = new Map<string, StateMeaning>([
  ...['close', 'closed', 'resolve', 'resolved', 'ok', 'recovered'].map((word) => [word, 'ends'] as const),
  ...['trigger', 'alerting', 'firing'].map((word) => [word, 'fires'] as const),
])

type Vocabulary = { name: string; names: string[]; words: ReadonlyMap<string, StateMeaning> }

const list = (text = ''): string[] => (text === '' ? [] : text.split(',').map((each) => each.trim()))

const vocabularies: Vocabulary[] = stateSenders.map((sender) => ({
  name: sender.name,
  names: [foldWord(sender.name), ...list(sender.also)],
  words: new Map(stateMeanings.flatMap((means) => list(sender[means]).map((word) => [word, means] as const))),
}))

/** Fields and labels that name the monitoring tool behind a body. */
const senderFields = ['sender', 'source', 'monitoring_tool', 'tool', 'integration']

function namesIn(item: RawFields): string[] {
  const labels = isFields(item.labels) ? item.labels : {}
  const said = [item, labels].flatMap((fields) => senderFields.flatMap((name) => fieldText(fields, name) ?? []))
  return said.map(foldWord)
}

/**
 * Finds the sender with one of these names. The name may be a part of a longer name
 * (`uptime-kuma-eu1`).
 */
function senderOf(names: readonly string[]): Vocabulary | null {
  for (const name of names) {
    const found = vocabularies.filter((each) => each.names.some((known) => ` ${name} `.includes(` ${known} `)))
    // Skips a name that contains the names of two senders, because it is ambiguous.
    if (found.length === 1) return found[0] ?? null
  }
  return null
}

type JudgedState = Pick<Alert, 'status' | 'endReason' | 'stateWord'>

const judged: Record<StateMeaning, (word: string) => JudgedState> = {
  fires: () => ({ status: 'firing' }),
  ends: () => ({ status: 'resolved' }),
  no_data: (word) => ({ status: 'firing', endReason: word }),
  off: (word) => ({ status: 'resolved', endReason: word }),
}

/**
 * Finds the meaning of a state word. Uses, in this order: the installation's own words, the words
 * of the sender that the body names, the words of the sender that the token's name contains, the
 * words of the documented form for scripts, and (if the body names no sender) words on which all
 * senders agree. An unknown word ends nothing and is noted on the alert.
 */
export function stateOf(said: string | null, item: RawFields, site: SiteWords): JudgedState {
  if (said === null) return { status: 'firing' }
  const word = foldWord(said)
  const shown = capChars(said.trim(), maxWordChars)
  const names = namesIn(item)
  const token = site.token === null ? [] : [foldWord(site.token)]
  const stated = senderOf(names)
  const sender = stated ?? senderOf(token)
  const means =
    meaningBySite(word, [...names, ...token, ...(sender?.names ?? [])], site.rules) ??
    sender?.words.get(word) ??
    ownWords.get(word) ??
    (stated ? undefined : agreedMeaning(word))
  return means === undefined ? { status: 'firing', stateWord: shown } : judged[means](shown)
}

function meaningBySite(word: string, names: readonly string[], rules: SiteWords['rules']): StateMeaning | undefined {
  const fits = rules.filter((rule) => rule.word === word && (rule.sender === null || names.includes(rule.sender)))
  return (fits.find(({ sender }) => sender !== null) ?? fits[0])?.means
}

/**
 * Returns the meaning of a word on which all senders agree. A word with several meanings (`0`,
 * `unknown`), or for switched off, needs a known sender.
 */
function agreedMeaning(word: string): StateMeaning | undefined {
  const [means, ...others] = new Set(vocabularies.flatMap(({ words }) => words.get(word) ?? []))
  return others.length > 0 || means === 'off' ? undefined : means
}
