import { functionColumns } from './postgres-words.ts'

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

type Node = Record<string, unknown>

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
