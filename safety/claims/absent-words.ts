import type { Claim } from '../../domain/claim.ts'
import { type Quoted, speaksOf, wordsOf } from './clause-words.ts'
import { add, addHead, formsOf, type KnownWords } from './known-words.ts'
import { figuresIn } from './numbers.ts'
import type { Part } from './rows.ts'
import type { Clause } from './text.ts'
import { mixedLetters } from './words.ts'

/**
 * Says why rows do not show an absent claim word for word; null: it is grade A. They have to have
 * asked for what it says is absent.
 */
export function findLooseAbsence(quoted: Omit<Quoted, 'places'>): string | null {
  const { claim, clauses, evidence } = quoted
  const parts = claim.quotes.flatMap(({ seq }) => evidence.parts.filter((part) => part.seqs.includes(seq)))
  const known: KnownWords = { plain: new Set(), denied: new Set() }
  for (const part of parts) addHead(known, part)
  for (const { text } of claim.quotes) add(known.plain, text)
  const words = clauses.flatMap((clause) => wordsOf(clause, figuresIn(clause.text), []))
  const word = words.find(({ text }) => !formsOf(text).some((form) => known.plain.has(form)))
  return (
    mixedLetters({ claim }) ??
    (word ? `no row that it cites was asked for "${word.text}"` : null) ??
    widened(claim, clauses, parts)
  )
}

const always = /\b(?:n?ever|always|nowhere|anywhere|everywhere)\b/
/** No node at all: what one of them was asked says nothing of the others. */
const ofAll =
  /\b(?:no|any|none of the|neither|every|all|each|on no)(?: other)? (?:nodes?|hosts?|servers?|machines?|vms?|guests?|shards?|devices?|instances?)\b/

/**
 * One look at one place for one text shows no more: not never, not all machines, not what it did
 * not ask.
 */
function widened({ text }: Claim, clauses: readonly Clause[], parts: readonly Part[]): string | null {
  const said = text.toLowerCase()
  const wide = always.exec(said)?.[0]
  if (wide) return `no look shows "${wide}"`
  const all = ofAll.exec(said)?.[0]
  if (all && !parts.every(({ tool }) => /^list_/.test(tool))) return `one look says nothing of "${all}"`
  const narrow = parts.flatMap(askedFor)
  const unsaid = narrow.find((words) => !clauses.some((clause) => says(clause, words)))
  return unsaid ? `its row asked for "${unsaid.join(' ')}" alone` : null
}

/** Small words of a text say nothing of it. */
function says(clause: Clause, words: readonly string[]): boolean {
  const longest = Math.max(...words.map(({ length }) => length))
  const telling = words.filter(({ length }) => length >= Math.min(4, longest))
  return speaksOf(clause, telling) || telling.some((word) => clause.raw.includes(word))
}

const narrowing = ['name', 'text', 'match', 'contains', 'query', 'promql', 'pattern', 'grep', 'unit', 'level', 'status']
const filters = /^(?:e?grep|fgrep|rg|zgrep|pgrep|pidof|find|locate|which)$/

/** What a row asked for among all that is there: the words of each text. */
function askedFor(part: Part): string[][] {
  const args = part.arguments
  const texts = narrowing.flatMap((key) => args[key] ?? []).filter((each) => typeof each === 'string')
  const argv = Array.isArray(args.argv) ? args.argv.map(String) : []
  const at = argv.findIndex((word) => filters.test(word.split('/').at(-1) as string))
  const filtered = at < 0 ? [] : argv.slice(at + 1).filter((word) => !/^[-/]/.test(word))
  const all = [...texts, ...(filtered.length > 0 ? [filtered.join(' ')] : [])]
  return all.map((text) => text.toLowerCase().match(/[\p{L}\p{N}_.-]{2,}/gu) ?? []).filter(({ length }) => length > 0)
}
