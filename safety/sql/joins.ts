import { SqlProblem, type Token } from './cursor.ts'

/**
 * Detects statements of MySQL or SQLite that make many rows or characters of few, by tables that
 * are not joined, an endless recursion or a repeated text. Reads tokens, because the grammar builds
 * no syntax tree.
 */

/**
 * Names of the tables in a FROM, and pairs that conditions join; null for a column without a table.
 */
export type FromTables = { tables: string[]; links: [left: string | null, right: string | null][] }

export const newFrom = (): FromTables => ({ tables: [], links: [] })

export function checkJoined({ tables, links }: FromTables): void {
  const groups = tables.map((name) => new Set([name]))
  for (const [left, right] of links) {
    const find = (name: string | null) => (name === null ? undefined : groups.find((group) => group.has(name)))
    // Lets a column without a table's name join one table that is not joined yet, because it may
    // belong to any table.
    const from = left === null ? groups.find((group) => group !== find(right)) : find(left)
    const to = right === null ? groups.find((group) => group !== from) : find(right)
    if (!from || !to || from === to) continue
    for (const name of to) from.add(name)
    groups.splice(groups.indexOf(to), 1)
  }
  if (groups.length > 1) throw new SqlProblem('a join without a join condition: compare a column of each side with =')
}

const isName = (token: Token | undefined): boolean => token?.kind === 'word' || token?.kind === 'name'

/** Returns the name by which columns name a table: its alias, or its own name. */
export function nameOf(tokens: readonly Token[]): string {
  const last = tokens.findLast((token) => isName(token))
  return last?.text.toLowerCase() ?? ''
}

/**
 * Lists the conditions `a.x = b.y` that every row must meet: those not inside brackets, and not
 * next to an OR.
 */
export function listLinks(tokens: readonly Token[]): [string | null, string | null][] {
  const found: [string | null, string | null][] = []
  let depth = 0
  for (const [at, token] of tokens.entries()) {
    if (token.text === '(' && token.kind === 'sign') depth += 1
    if (token.text === ')' && token.kind === 'sign') depth -= 1
    if (depth > 0) continue
    if (/^(?:OR|XOR|NOT)$/.test(token.word) || token.text === '||') return []
    if (token.kind !== 'sign' || !/^(?:=|==|<=>)$/.test(token.text)) continue
    const [left, right] = [columnBefore(tokens, at), columnBehind(tokens, at)]
    if (left && right && (left.table !== right.table || left.table === null)) found.push([left.table, right.table])
  }
  return found
}

type Column = { table: string | null }

const constants = /^(?:NULL|TRUE|FALSE)$/

function columnBefore(tokens: readonly Token[], at: number): Column | null {
  const last = tokens[at - 1]
  if (!isName(last) || constants.test(last!.word)) return null
  const hasTable = tokens[at - 2]?.text === '.'
  const begins = tokens[hasTable ? at - 4 : at - 2]
  // Ignores a computation with a column, which need not join by that column.
  if (begins && begins.kind === 'sign' && !/^[.(,]$/.test(begins.text)) return null
  return { table: hasTable ? tokens[at - 3]!.text.toLowerCase() : null }
}

function columnBehind(tokens: readonly Token[], at: number): Column | null {
  if (!isName(tokens[at + 1]) || constants.test(tokens[at + 1]!.word)) return null
  let end = at + 1
  while (tokens[end + 1]?.text === '.' && isName(tokens[end + 2])) end += 2
  const next = tokens[end + 1]
  if (next?.kind === 'sign' && !/^[),;]$/.test(next.text)) return null
  return { table: end > at + 1 ? tokens[end - 2]!.text.toLowerCase() : null }
}

/** Whether the result is one row, or is limited by a literal number. */
export function isSmall(tokens: readonly Token[]): boolean {
  const words = tokens.map(({ word }) => word)
  const limit = words.lastIndexOf('LIMIT')
  if (limit >= 0 && Number(tokens[limit + 1]?.text) <= 100 && tokens[limit + 2] === undefined) return true
  if (words.includes('UNION') || words.includes('GROUP') || words.includes('OVER')) return false
  return !words.includes('FROM') || /^(?:COUNT|SUM|MAX|MIN|AVG|TOTAL)$/.test(words[words.indexOf('SELECT') + 1] ?? '')
}

/** Highest number to which a recursion may count. */
const maxCount = 100_000

/**
 * Checks a WITH table that reads itself: it must follow another table, count up, or have a limit.
 */
export function checkRepeated(name: string, tokens: readonly Token[]): void {
  const own = name.toLowerCase()
  const isOwn = (token: Token | undefined) => isName(token) && token!.text.toLowerCase() === own
  if (!tokens.some((token, at) => isOwn(token) && tokens[at + 1]?.text !== '.')) return
  const union = tokens.findIndex(({ word }) => word === 'UNION')
  const repeated = tokens.slice(Math.max(0, union))
  const hasNumber = (at: number) => repeated[at]?.kind === 'number' && Number(repeated[at]!.text) <= maxCount
  const isSeparate = !repeated.some(({ word }) => word === 'OR')
  const steps = (sign: string) =>
    repeated.some(
      ({ text }, at) =>
        text === sign && isName(repeated[at - 1]) && hasNumber(at + 1) && Number(repeated[at + 1]!.text) > 0,
    )
  const counts = repeated.some(
    ({ text }, at) =>
      isName(repeated[at - 1]) &&
      hasNumber(at + 1) &&
      ((/^<=?$/.test(text) && steps('+')) || (/^>=?$/.test(text) && steps('-'))),
  )
  const limits = repeated.some(({ word }, at) => word === 'LIMIT' && hasNumber(at + 1))
  const where = repeated.findIndex(({ word }) => word === 'WHERE' || word === 'ON')
  const follows =
    where >= 0 && listLinks(repeated.slice(where + 1)).some((link) => link.includes(own) || link.includes(null))
  if (!isSeparate || !(counts || limits || follows))
    throw new SqlProblem('a recursion without a bound: count to a number, as n < 100, by n + 1')
}

const widened = new Map([
  ['lpad', 1],
  ['rpad', 1],
  ['repeat', 1],
  ['space', 0],
])
/** Most characters that may be made of one character. */
const maxWidth = 10_000

/** Checks that a function which lengthens a text gets a literal number. */
export function checkWidth(name: string, tokens: readonly Token[]): void {
  const problem = `${name} of more than ${maxWidth} characters`
  if (
    /^(?:printf|format)$/.test(name) &&
    tokens.some(({ kind, text }) => kind === 'string' && /%[^a-z%]*(?:\d{5}|\*)/i.test(text))
  )
    throw new SqlProblem(problem)
  const place = widened.get(name)
  if (place === undefined) return
  const given = argument(tokens, place)
  if (given.length !== 1 || given[0]!.kind !== 'number' || Number(given[0]!.text) > maxWidth)
    throw new SqlProblem(problem)
}

function argument(tokens: readonly Token[], place: number): readonly Token[] {
  const found: Token[][] = [[]]
  let depth = 0
  for (const token of tokens) {
    if (token.text === '(') depth += 1
    if (token.text === ')') depth -= 1
    if (token.text === ',' && token.kind === 'sign' && depth === 0) found.push([])
    else found.at(-1)!.push(token)
  }
  return found[place] ?? []
}
