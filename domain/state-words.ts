/**
 * Meanings of a sender's word: the alert fires, has ended, has no data (which opens an incident
 * unless the alert already fires), or was switched off. `no_data` and `off` do not prove an end.
 */
export const stateMeanings = ['fires', 'ends', 'no_data', 'off'] as const
export type StateMeaning = (typeof stateMeanings)[number]

/** A configured word for the state of an alert, for one sender or for all senders. */
export type StateRule = { sender: string | null; word: string; means: StateMeaning }

type ParsedRules = { ok: true; rules: StateRule[] } | { ok: false; reason: string }

const maxRules = 200
const form = /^(?:([A-Za-z0-9_.@-]{1,100})\s*:\s*)?(\S[^=:]{0,99}?)\s*=\s*(\w+)$/

/** Normalizes a sender's word. Ignores case, signs and emoji: `✅ Up`, `INSUFFICIENT_DATA`. */
export function foldWord(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
}

/**
 * Parses the setting `alert.state_words`, which defines an installation's own words, one rule per
 * line or semicolon:
 *
 *   nominell = ends
 *   zabbix: 0 = ends
 */
export function parseStateRules(text: string): ParsedRules {
  const rules: StateRule[] = []
  for (const line of text.split(/[;\n]/).map((each) => each.trim())) {
    if (line === '') continue
    const [, sender = null, said = '', means = ''] = form.exec(line) ?? []
    const word = foldWord(said)
    const known = stateMeanings.find((each) => each === means)
    if (word === '')
      return { ok: false, reason: `${quote(line)} is not of the form word = meaning, or sender: word = meaning` }
    if (!known) return { ok: false, reason: `${quote(means)} is not a meaning: ${stateMeanings.join(', ')}` }
    rules.push({ sender: sender === null ? null : foldWord(sender), word, means: known })
  }
  if (rules.length > maxRules) return { ok: false, reason: `at most ${maxRules} words are allowed` }
  return { ok: true, rules }
}

const quote = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text)
