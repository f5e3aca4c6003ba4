import { functionColumns } from './postgres-words.ts'

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

type QueryShape = { rows: number; isRecursive: boolean; most: number }

function visit(value: unknown, seen: QueryShape): void {
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

const checks: Readonly<Record<string, (node: Node, seen: QueryShape) => void>> = {
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

/** Thrown where a node is not on the list of a read; the message names it. */
export class Refused extends Error {}

/** The names under which functions in FROM are known, with the columns each surely has. */
export type FunctionColumns = ReadonlyMap<string, ReadonlySet<string>>

/**
 * PostgreSQL takes `f.name` for a call `name(f)` where `f` is a function in FROM without such a column: by
 * `SELECT f.pg_read_file FROM unnest(ARRAY['/etc/passwd']) f` a file was read (measured with 18). So behind such an
 * alias only surely existing columns may stand. Rows of tables reach no built-in function that matters, yet the
 * families that act are refused there too. Answers the name that may be called, or null.
 */
export function mayCall(fields: string[], columns: FunctionColumns): string | null {
  const name = fields.at(-1)
  const known = columns.get(fields.at(-2) ?? '')
  if (name === undefined || fields.length < 2) return null
  if (/^(?:pg|lo|dblink|txid)_/.test(name)) return name
  return known && !known.has(name) ? name : null
}

export function functionColumnsOf(statement: unknown): FunctionColumns {
  const found = new Map<string, Set<string>>()
  collectFunctionAliases(statement, found)
  return found
}

export function strings(list: unknown): string[] {
  const found: string[] = []
  for (const entry of Array.isArray(list) ? list : []) {
    const text = (entry as { String?: { sval?: string } }).String?.sval
    if (text !== undefined) found.push(text)
  }
  return found
}

function collectFunctionAliases(node: unknown, aliases: Map<string, Set<string>>): void {
  if (node === null || typeof node !== 'object') return
  for (const [key, value] of Object.entries(node)) {
    if (key === 'RangeFunction') addFunctionAlias(value as Node, aliases)
    collectFunctionAliases(value, aliases)
  }
}

/** Functions whose one column surely bears the alias's own name: they have no named result. */
const selfNamed = new Set(['generate_series', 'generate_subscripts', 'string_to_table', 'regexp_split_to_table'])

function addFunctionAlias(node: Node, aliases: Map<string, Set<string>>): void {
  const alias = node.alias as { aliasname?: string; colnames?: unknown } | undefined
  const called = [...JSON.stringify(node.functions ?? '').matchAll(/"sval":"([^"]*)"/g)].map((match) => match[1]!)
  // COALESCE and CAST may stand in FROM too, and then bear names that only the server knows.
  if (!alias && !/^\[\{"List":\{"items":\[\{"FuncCall"/.test(JSON.stringify(node.functions ?? ''))) {
    throw new Refused('FROM an expression without an alias')
  }
  const renamed = [...strings(alias?.colnames), ...columnNames(node.coldeflist)]
  for (const name of alias?.aliasname ? [alias.aliasname] : called) {
    const columns = new Set([...functionColumns, ...renamed])
    const first = called.find((word) => word !== 'pg_catalog') ?? ''
    if (renamed.length === 0 && selfNamed.has(first)) columns.add(name)
    // The same alias may stand for two functions, in two scopes: only what both have is surely a column.
    const before = aliases.get(name)
    aliases.set(name, before ? new Set([...columns].filter((column) => before.has(column))) : columns)
  }
}

function columnNames(definitions: unknown): string[] {
  const list = (definitions ?? []) as { ColumnDef?: { colname?: string } }[]
  return list.map((column) => column.ColumnDef?.colname ?? '')
}
