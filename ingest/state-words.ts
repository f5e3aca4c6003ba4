import type { Alert } from '../domain/alert.ts'
import { maxWordChars } from '../domain/alert.ts'
import { foldWord, type StateMeaning, type StateRule, stateMeanings } from '../domain/state-words.ts'
import { capChars, fieldText, isFields, type RawFields } from './fields.ts'
import { stateSenders } from './state-senders.ts'

/** What a site says of words, and whose token the body came with. */
export type SiteWords = { rules: readonly StateRule[]; token: string | null }
export const noSiteWords: SiteWords = { rules: [], token: null }

/** The words of the form that is documented for scripts. */
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

/** What names the tool behind a body, in it or in its labels; then the name of its token. */
const senderFields = ['sender', 'source', 'monitoring_tool', 'tool', 'integration']

function namesIn(item: RawFields): string[] {
  const labels = isFields(item.labels) ? item.labels : {}
  const said = [item, labels].flatMap((fields) => senderFields.flatMap((name) => fieldText(fields, name) ?? []))
  return said.map(foldWord)
}

/** The sender of these names: whole, or as words of a longer one (`uptime-kuma-eu1`). */
function senderOf(names: readonly string[]): Vocabulary | null {
  for (const name of names) {
    const found = vocabularies.filter((each) => each.names.some((known) => ` ${name} `.includes(` ${known} `)))
    // Two of them in one name say nothing.
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
 * The meaning of a body's word: by the site's words, by those of the sender it names, else by those
 * of the sender that its token is called after, or by a word that all its users use alike. An
 * unknown word ends nothing, and is named on the alert.
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
 * A word that senders use differently (`0`, `1`, `unknown`), or for switched off, says nothing
 * without its sender.
 */
function agreedMeaning(word: string): StateMeaning | undefined {
  const [means, ...others] = new Set(vocabularies.flatMap(({ words }) => words.get(word) ?? []))
  return others.length > 0 || means === 'off' ? undefined : means
}
