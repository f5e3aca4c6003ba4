/**
 * Detects awk programs that make much data from little: texts that double, fields with high
 * numbers, nested loops. Reads the programs' tokens.
 */

export type AwkToken = { text: string; kind: 'text' | 'pattern' | 'number' | 'word' | 'sign' }

/** The highest plausible number of a field, and the most rounds of nested loops. */
const maxField = 10_000
const maxRounds = 1_000_000
/** Number of rounds that is assumed for a loop whose end is a variable. */
const likelyRounds = 10

const notOperands = /^(?:if|else|for|in|print|printf|return|delete|next|nextfile|exit|break|continue|BEGIN|END)$/

/** Most assignments, because each is compared with the others. */
const maxAssignments = 200
export const maxLoops = 20

export function findGrowth(tokens: readonly AwkToken[]): string | null {
  if (tokens.filter(({ text }) => text === '=').length > maxAssignments) return 'too many assignments'
  return findFarField(tokens) ?? findDoubling(tokens) ?? findRounds(tokens)
}

/** Finds `NF = 1e9` and `$1000000 = x`, which create all fields up to that number. */
function findFarField(tokens: readonly AwkToken[]): string | null {
  const counted = new Set(tokens.flatMap(({ text }, at) => (text === 'for' ? [tokens[at + 2]?.text ?? ''] : [])))
  for (const [at, { text, kind }] of tokens.entries()) {
    if (text !== '=' || kind !== 'sign') continue
    const sign = /^[-+*/%^]$/.test(tokens[at - 1]?.text ?? '')
    const target = at - (sign ? 2 : 1)
    const [before, name] = [tokens[target - 1]?.text, tokens[target]]
    if (name?.text === 'NF' && before !== '$') {
      const number = Number(tokens[at + 1]?.text)
      if (sign ? tokens[at - 1]!.text !== '-' : !(number <= maxField || tokens[at + 1]?.text === 'NF'))
        return 'NF is set too high'
    }
    const isNear =
      name?.kind === 'number'
        ? Number(name.text) <= maxField
        : name?.text === 'NF' || counted.has(name?.text ?? '') || name?.text === ')'
    if (before === '$' && !isNear) return `$${name?.text} may be too high`
    if (name?.text === ')' && tokens.some((each, index) => each.text === '$' && tokens[index + 1]?.text === '('))
      if (tokens.some((each) => each.kind === 'number' && Number(each.text) > maxField))
        return 'a field number may be too high'
  }
  return null
}

/**
 * Finds `x = x x` or `y = x; x = y x`, which double a text in each line or round. Counts how often
 * a text contains its former value.
 */
function findDoubling(tokens: readonly AwkToken[]): string | null {
  const made: Made = new Map()
  const joined: { name: string; counts: ReadonlyMap<string, number> }[] = []
  for (const [at, { text, kind }] of tokens.entries()) {
    if (text !== '=' || kind !== 'sign' || /^[-+*/%^]$/.test(tokens[at - 1]?.text ?? '')) continue
    const name = targetOf(tokens, at - 1)
    const right = tokens.slice(at + 1, endOf(tokens, at + 1))
    const counts = countNames(right)
    made.set(name, new Set([...(made.get(name) ?? []), ...counts.keys()]))
    if (isJoined(right)) joined.push({ name, counts })
  }
  for (const { name, counts } of joined) {
    let held = 0
    for (const [part, count] of counts) if (leadsTo(made, part, name)) held += count
    if (held > 1) return `${name} may double`
  }
  return null
}

/** Returns the name that gets a value: for an element its array, for a field the sign `$`. */
function targetOf(tokens: readonly AwkToken[], at: number): string {
  let from = at
  if (tokens[at]?.text === ']' || tokens[at]?.text === ')') {
    const [open, close] = tokens[at]!.text === ']' ? ['[', ']'] : ['(', ')']
    for (let depth = 0; from >= 0; from -= 1) {
      if (tokens[from]!.text === close) depth += 1
      if (tokens[from]!.text === open && --depth === 0) break
    }
    from -= 1
  }
  return tokens[from]?.text === '$' || tokens[from - 1]?.text === '$' ? '$' : (tokens[from]?.text ?? '')
}

function endOf(tokens: readonly AwkToken[], from: number): number {
  let depth = 0
  for (let at = from; at < tokens.length; at += 1) {
    const { text, kind } = tokens[at]!
    if (kind !== 'sign') continue
    if (/^[([]$/.test(text)) depth += 1
    if (/^[)\]]$/.test(text) && --depth < 0) return at
    if (depth === 0 && /^[;}\n,]$/.test(text)) return at
  }
  return tokens.length
}

/** Whether tokens join texts: two adjacent values, or a function that joins. */
function isJoined(tokens: readonly AwkToken[]): boolean {
  return tokens.some(({ text, kind }, at) => {
    if (/^(?:sprintf|gensub)$/.test(text)) return true
    const next = tokens[at + 1]
    if (!next || (kind === 'word' && (notOperands.test(text) || next.text === '('))) return false
    const ends = kind !== 'sign' || /^[)\]]$/.test(text)
    return ends && ((next.kind !== 'sign' && next.text !== 'in') || /^[($]$/.test(next.text))
  })
}

function countNames(tokens: readonly AwkToken[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [at, { text, kind }] of tokens.entries()) {
    const name = text === '$' ? '$' : kind === 'word' && tokens[at + 1]?.text !== '(' ? text : null
    if (name !== null) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

/** The names from which the value of each name is made. */
type Made = Map<string, ReadonlySet<string>>

function leadsTo(made: Made, from: string, to: string): boolean {
  const seen = new Set<string>()
  const open = [from]
  while (open.length > 0) {
    const name = open.pop()!
    if (name === to) return true
    if (seen.has(name)) continue
    seen.add(name)
    open.push(...(made.get(name) ?? []))
  }
  return false
}

/** Counts the rounds of a program's loops as if each loop was nested in the loop before it. */
function findRounds(tokens: readonly AwkToken[]): string | null {
  let rounds = 1
  for (const [at, { text }] of tokens.entries()) {
    if (text !== 'for') continue
    const header = tokens.slice(at, at + 40)
    const end = header.findIndex((token) => /^(?:[<>]|[<>]=)$/.test(token.text))
    const isOver = header.findIndex((token) => token.text === 'in')
    if (isOver > 0 && (end < 0 || isOver < end)) continue
    const numbers = header.slice(0, Math.max(0, end) + 4).filter(({ kind }) => kind === 'number')
    rounds *= Math.max(likelyRounds, ...numbers.map((number) => Number(number.text)))
  }
  return rounds > maxRounds ? `loops of more than ${maxRounds} rounds` : null
}
