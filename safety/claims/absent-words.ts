import type { Claim } from '../../domain/claim.ts'
import { type Quoted, speaksOf, wordsOf } from './clause-words.ts'
import { add, addHead, formsOf, type KnownWords } from './known-words.ts'
import { figuresIn } from './numbers.ts'
import type { Part } from './rows.ts'
import type { Clause } from './text.ts'
import { mixedLetters } from './words.ts'

/**
 * Returns why rows do not show an absent claim word for word; null if the claim gets grade A. The
 * rows must have searched for what the claim calls absent.
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
    (word ? `no cited row searched for "${word.text}"` : null) ??
    widened(claim, clauses, parts)
  )
}

const always = /\b(?:n?ever|always|nowhere|anywhere|everywhere)\b/
/**
 * Matches claims about all nodes, because an answer of one node shows nothing about the other
 * nodes.
 */
const ofAll =
  /\b(?:no|any|none of the|neither|every|all|each|on no)(?: other)? (?:nodes?|hosts?|servers?|machines?|vms?|guests?|shards?|devices?|instances?)\b/

/**
 * Returns how a claim goes beyond one search for one text in one place: the claim says "never", is
 * about all machines, or names another text.
 */
function widened({ text }: Claim, clauses: readonly Clause[], parts: readonly Part[]): string | null {
  const said = text.toLowerCase()
  const wide = always.exec(said)?.[0]
  if (wide) return `no read shows "${wide}"`
  const all = ofAll.exec(said)?.[0]
  if (all && !parts.every(({ tool }) => /^list_/.test(tool))) return `one read does not cover "${all}"`
  const narrow = parts.flatMap(askedFor)
  const unsaid = narrow.find((words) => !clauses.some((clause) => says(clause, words)))
  return unsaid ? `its row searched only for "${unsaid.join(' ')}"` : null
}

/** Whether a clause uses meaningful words of the text. */
function says(clause: Clause, words: readonly string[]): boolean {
  const longest = Math.max(...words.map(({ length }) => length))
  const telling = words.filter(({ length }) => length >= Math.min(4, longest))
  return speaksOf(clause, telling) || telling.some((word) => clause.raw.includes(word))
}

const narrowing = ['name', 'text', 'match', 'contains', 'query', 'promql', 'pattern', 'grep', 'unit', 'level', 'status']
const filters = /^(?:e?grep|fgrep|rg|zgrep|pgrep|pidof|find|locate|which)$/

/** Lists the texts that a row searched for, each as a list of words. */
function askedFor(part: Part): string[][] {
  const args = part.arguments
  const texts = narrowing.flatMap((key) => args[key] ?? []).filter((each) => typeof each === 'string')
  const argv = Array.isArray(args.argv) ? args.argv.map(String) : []
  const at = argv.findIndex((word) => filters.test(word.split('/').at(-1) as string))
  const filtered = at < 0 ? [] : argv.slice(at + 1).filter((word) => !/^[-/]/.test(word))
  const all = [...texts, ...(filtered.length > 0 ? [filtered.join(' ')] : [])]
  return all.map((text) => text.toLowerCase().match(/[\p{L}\p{N}_.-]{2,}/gu) ?? []).filter(({ length }) => length > 0)
}
