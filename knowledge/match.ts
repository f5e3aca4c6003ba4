import type { InventoryKind } from '../domain/kinds.ts'
import { matchReasons, type Runbook, type RunbookMatch } from '../domain/runbook.ts'

/**
 * Which runbooks fit an incident. A pure scorer over the list in memory: a site has dozens of files that live in a folder, so an index in
 * the database would be a second copy to keep true, and this one gives the same answer in a test, on the command line and in the night.
 */
export type Subject = {
  type: string
  kind: InventoryKind | null
  /** What its alert says: title, names, summary. A stranger's text, used to order and for nothing else. */
  words: string
}

type Why = (typeof matchReasons)[number]
type Fit = { runbook: Runbook; why: Why; words: number; pattern: number; hasKind: boolean }

const mostOthers = 2
/** Of the rarest word's weight: a single everyday word makes no match. */
const leastWords = 1.5

/** The best one where it fits by type or kind, and the next two. Equal input, equal answer, in any order of the list. */
export function matchRunbooks(runbooks: readonly Runbook[], subject: Subject): RunbookMatch {
  const weights = weighWords(runbooks)
  const asked = wordsOf(`${subject.type} ${subject.words}`)
  const fits = runbooks.flatMap((runbook) => fitOf(runbook, subject, scoreWords(runbook, asked, weights)) ?? [])
  const [best, ...rest] = fits.sort(compare)
  const isInlined = best !== undefined && best.why !== 'words'
  return {
    chosen: isInlined ? { ...best.runbook, why: best.why } : null,
    others: (isInlined ? rest : fits)
      .slice(0, mostOthers)
      .map(({ runbook: { name, description }, why }) => ({ name, description, why })),
  }
}

function fitOf(runbook: Runbook, { type, kind }: Subject, words: number): Fit | null {
  const { incidentTypes, resourceKinds } = runbook
  const hasKind = kind !== null && resourceKinds.includes(kind)
  // A file for hosts says nothing about a node.
  if (kind !== null && resourceKinds.length > 0 && !hasKind) return null
  const toFit = (why: Why, pattern = 0) => ({ runbook, why, words, pattern, hasKind })
  const lower = type.toLowerCase()
  if (incidentTypes.some((each) => each.toLowerCase() === lower)) return toFit('type')
  const patterns = incidentTypes.filter((each) => each.includes('*') && fitsPattern(each.toLowerCase(), lower))
  if (patterns.length > 0) return toFit('pattern', Math.max(...patterns.map((each) => each.length)))
  // One that names its types is about those: the kind alone would give the way of another trouble.
  if (hasKind && incidentTypes.length === 0) return toFit('kind')
  return words >= leastWords ? toFit('words') : null
}

function compare(a: Fit, b: Fit): number {
  return (
    matchReasons.indexOf(a.why) - matchReasons.indexOf(b.why) ||
    Number(b.hasKind) - Number(a.hasKind) ||
    b.pattern - a.pattern ||
    b.words - a.words ||
    (a.runbook.name < b.runbook.name ? -1 : 1)
  )
}

/** Whether a text fits a pattern whose stars stand for any text. By parts, not by a regular expression: a file may hold any pattern. */
function fitsPattern(pattern: string, text: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop() ?? ''
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  let from = first.length
  for (const part of parts) {
    const at = text.indexOf(part, from)
    if (at < 0) return false
    from = at + part.length
  }
  return from <= text.length - last.length
}

const everyday = new Set(
  'a an and are as at be by for from has in is it its of on or that the to was when with'.split(' '),
)

/** Words of three characters or more, with the parts of `NodeDiskFull` and `disk_full`. */
function wordsOf(text: string): Set<string> {
  const parts = text
    .slice(0, 4_000)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
  return new Set((parts.match(/[\p{L}\p{N}]{3,40}/gu) ?? []).filter((word) => !everyday.has(word)))
}

const textOf = ({ name, description, incidentTypes }: Runbook) =>
  wordsOf(`${name} ${description} ${incidentTypes.join(' ')}`)

/** A word that few runbooks have says more. */
function weighWords(runbooks: readonly Runbook[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const runbook of runbooks) for (const word of textOf(runbook)) counts.set(word, (counts.get(word) ?? 0) + 1)
  return new Map([...counts].map(([word, count]) => [word, 1 / count]))
}

function scoreWords(runbook: Runbook, asked: ReadonlySet<string>, weights: ReadonlyMap<string, number>): number {
  return [...textOf(runbook)].reduce((sum, word) => sum + (asked.has(word) ? (weights.get(word) ?? 0) : 0), 0)
}
