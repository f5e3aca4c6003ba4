/**
 * Templates of log lines: lines that say the same with other numbers and names are one. After Drain (He et al., "Drain: An Online Log Parsing
 * Approach with Fixed Depth Tree", ICWS 2017): lines of one length that begin alike share a leaf, and join the template there that has most words in common.
 */

export type Template = {
  /** Words, with `<*>` where they differ. */
  text: string
  count: number
  firstMs: number
  lastMs: number
  /** The newest line as it came. */
  sample: string
}

export type LogLine = { atMs: number; text: string }

/** What differs from line to line and says nothing of their kind; the order matters. */
const masks: readonly [RegExp, string][] = [
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?/g, '<*>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<*>'],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, '<*>'],
  [/\b0x[0-9a-f]+\b/gi, '<*>'],
  [/\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b/gi, '<*>'],
  [/(?<![\w.])[-+]?\d+(?:[.,:]\d+)*(?:%|[a-zµ]{1,3})?(?![\w.])/gi, '<*>'],
]

const mostWords = 60
/** The part of the words that has to be the same. */
const similarity = 0.5
/** Lines with other words at the beginning are not compared. */
const depth = 2
/** Templates of one length with one beginning: the samples of LogHub have fewer than a hundred. */
const mostInLeaf = 200

type Group = Template & { words: string[] }

/** Templates of lines, the most frequent first. Lines from before `sinceMs` make templates known, and are not counted. */
export function findTemplates(lines: readonly LogLine[], sinceMs = Number.NEGATIVE_INFINITY): Template[] {
  return [...new Set(groupLines(lines, sinceMs))]
    .filter(({ count }) => count > 0)
    .map(({ words: _, ...template }) => template)
    .sort((a, b) => b.count - a.count || a.text.localeCompare(b.text))
}

/** The template of each line; lines of one kind have the same object. */
export function groupLines(lines: readonly LogLine[], sinceMs = Number.NEGATIVE_INFINITY): Group[] {
  const leaves = new Map<string, Group[]>()
  return lines.map((line) => {
    const words = toWords(line.text)
    const leaf = leafOf(words)
    const groups = leaves.get(leaf) ?? []
    leaves.set(leaf, groups)
    // Beyond that a text is no log of a program: what comes then joins the last group, so that a stranger's lines cost no minute.
    const known = chooseGroup(groups, words) ?? (groups.length >= mostInLeaf ? groups.at(-1) : null)
    if (known) {
      join(known, words, line, sinceMs)
      return known
    }
    const group = begin(words, line, sinceMs)
    groups.push(group)
    return group
  })
}

/** A line as the words that templates are made of. */
export function toWords(text: string): string[] {
  const masked = masks.reduce((line, [pattern, mask]) => line.replace(pattern, mask), text.slice(0, 2_000))
  return masked.trim().split(/\s+/).slice(0, mostWords)
}

/** Lines of one length with the same first words; a word with a digit in it tells nothing apart. */
function leafOf(words: readonly string[]): string {
  const first = words.slice(0, depth).map((word) => (/\d|<\*>/.test(word) ? '<*>' : word))
  return `${words.length} ${first.join(' ')}`
}

function chooseGroup(groups: readonly Group[], words: readonly string[]): Group | null {
  let best: { group: Group; same: number } | null = null
  for (const group of groups) {
    const same = group.words.filter((word, at) => word === words[at] && word !== '<*>').length
    const fixed = group.words.filter((word) => word !== '<*>').length
    if (same >= Math.max(1, similarity * Math.max(fixed, words.length / 2)) && same > (best?.same ?? -1))
      best = { group, same }
    else if (fixed === 0 && !best) best = { group, same: 0 }
  }
  return best?.group ?? null
}

function begin(words: string[], { atMs, text }: LogLine, sinceMs: number): Group {
  return { words, text: words.join(' '), count: atMs >= sinceMs ? 1 : 0, firstMs: atMs, lastMs: atMs, sample: text }
}

function join(group: Group, words: readonly string[], { atMs, text }: LogLine, sinceMs: number): void {
  group.words = group.words.map((word, at) => (word === words[at] ? word : '<*>'))
  group.text = group.words.join(' ')
  if (atMs >= sinceMs) group.count += 1
  if (atMs >= group.lastMs) group.sample = text
  group.firstMs = Math.min(group.firstMs, atMs)
  group.lastMs = Math.max(group.lastMs, atMs)
}
