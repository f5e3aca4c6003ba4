import { Refused, strings } from './postgres-columns.ts'

/**
 * How many rows a statement can make of nothing. A role may not set `temp_file_limit` for itself (only a superuser may), so a query that
 * fills the disk has to be seen in its text; `statement_timeout`, which every role may set, ends what is only slow.
 */

type Node = Record<string, unknown>

/** More rows than a look needs. */
const mostRows = 100_000
/** A larger number in a recursion counts to it. */
const longestRecursion = 100_000

/** Throws where a statement makes rows without a bound, or joins tables without a condition. */
export function checkBounds(statement: unknown): void {
  const seen = { rows: 1, isRecursive: false, most: 0 }
  visit(statement, seen)
  if (seen.rows > mostRows) throw new Refused(`more than ${mostRows} rows`)
  if (seen.isRecursive && seen.most > longestRecursion) throw new Refused('a recursion without a bound')
}

type Seen = { rows: number; isRecursive: boolean; most: number }

function visit(value: unknown, seen: Seen): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const entry of value) visit(entry, seen)
    return
  }
  for (const [tag, node] of Object.entries(value as Node)) {
    if (node !== null && typeof node === 'object' && !Array.isArray(node)) checks[tag]?.(node as Node, seen)
    visit(node, seen)
  }
}

const checks: Readonly<Record<string, (node: Node, seen: Seen) => void>> = {
  FuncCall(node, seen) {
    if (strings(node.funcname).at(-1) === 'generate_series') seen.rows *= rowsOf(node)
  },
  SelectStmt: checkTables,
  larg: checkTables,
  rarg: checkTables,
  JoinExpr(node) {
    const hasCondition = node.quals !== undefined || node.usingClause !== undefined || node.isNatural === true
    if (!hasCondition && isTable(node.larg) && isTable(node.rarg)) throw new Refused('a join without a condition')
  },
  withClause(node, seen) {
    seen.isRecursive ||= node.recursive === true
  },
  CommonTableExpr(node, seen) {
    const query = (node.ctequery as { SelectStmt?: Node } | undefined)?.SelectStmt
    const repeated = query?.rarg as Node | undefined
    if (!seen.isRecursive || !repeated || !query) return
    if (repeated.whereClause === undefined && query.limitCount === undefined && !hasJoinCondition(repeated))
      throw new Refused('a recursion without a condition')
  },
  A_Const(node, seen) {
    const number = numberOf(node)
    if (number !== null) seen.most = Math.max(seen.most, Math.abs(number))
  },
}

const hasJoinCondition = (select: Node): boolean =>
  ((select.fromClause as Node[] | undefined) ?? []).some(
    (entry) => (entry.JoinExpr as Node | undefined)?.quals !== undefined,
  )

const isTable = (node: unknown): boolean => node !== null && typeof node === 'object' && 'RangeVar' in node

function checkTables(node: Node): void {
  const tables = ((node.fromClause as unknown[] | undefined) ?? []).filter(isTable)
  if (tables.length > 1 && node.whereClause === undefined) throw new Refused('a join without a condition')
}

/** Rows of `generate_series(from, to, step)` over plain numbers; anything else has no bound that can be seen. */
function rowsOf(call: Node): number {
  const [from, to, step = 1] = ((call.args as Node[] | undefined) ?? []).map(argument)
  if (typeof from !== 'number' || typeof to !== 'number' || typeof step !== 'number' || step === 0)
    throw new Refused('a series without plain bounds')
  return Math.max(1, Math.floor((to - from) / step) + 1)
}

function argument(node: Node): number | null {
  const minus = node.A_Expr as Node | undefined
  if (minus && minus.lexpr === undefined && strings(minus.name).join() === '-') {
    const inner = argument(minus.rexpr as Node)
    return inner === null ? null : -inner
  }
  return node.A_Const ? numberOf(node.A_Const as Node) : null
}

function numberOf(node: Node): number | null {
  if (node.ival !== undefined) return (node.ival as { ival?: number }).ival ?? 0
  const text = (node.fval as { fval?: string } | undefined)?.fval
  return text === undefined ? null : Number(text)
}
