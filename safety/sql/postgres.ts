import type { SqlFinding } from './inspect.ts'
import {
  checkBounds,
  type FunctionColumns,
  functionColumns,
  functionColumnsOf,
  mayCall,
  operators,
  readFunctions,
  secretRelations,
  types,
} from './postgres-bounds.ts'
import { checkColumns, isSecretSetting } from './postgres-columns.ts'
import { checkGrowth } from './postgres-growth.ts'
import { BoundRefusal, type SqlNode, strings } from './postgres-nodes.ts'
import { checkTypeWidth, checkWidth } from './postgres-width.ts'

let parseSync: ((text: string) => unknown) | null = null

/** Loads the parser, of 12 MB, at the first SQL text. */
export async function loadPostgresParser(): Promise<void> {
  if (parseSync) return
  const parser = await import('libpg-query')
  await parser.loadModule()
  parseSync = parser.parseSync
}

/**
 * The nodes of a read with the fields that are allowed, after PostgreSQL 18's parsenodes.h. Absent
 * on purpose: INTO, FOR UPDATE, TABLESAMPLE, cursors, and every statement except SELECT, SHOW and
 * EXPLAIN. `location` fields have no meaning here.
 */
const shapes: Record<string, string> = {
  SelectStmt: `distinctClause targetList fromClause whereClause groupClause groupDistinct havingClause windowClause
    valuesLists sortClause limitOffset limitCount limitOption withClause op all larg rarg groupByAll`,
  ExplainStmt: 'query options',
  DefElem: 'defname arg defaction',
  VariableShowStmt: 'name',
  WithClause: 'ctes recursive',
  CommonTableExpr: 'ctename aliascolnames ctematerialized ctequery',
  ResTarget: 'name val',
  ColumnRef: 'fields',
  A_Star: '',
  A_Const: 'ival fval boolval sval bsval isnull',
  A_Expr: 'kind name lexpr rexpr rexpr_list_start rexpr_list_end',
  BoolExpr: 'boolop args',
  NullTest: 'arg nulltesttype argisrow',
  BooleanTest: 'arg booltesttype',
  CaseExpr: 'arg args defresult',
  CaseWhen: 'expr result',
  CoalesceExpr: 'args',
  MinMaxExpr: 'op args',
  SubLink: 'subLinkType testexpr operName subselect',
  RowExpr: 'args row_format',
  A_ArrayExpr: 'elements list_start list_end',
  A_Indirection: 'arg indirection',
  A_Indices: 'uidx',
  TypeCast: 'arg typeName',
  TypeName: 'names typmods typemod arrayBounds',
  CollateClause: 'arg collname',
  SQLValueFunction: 'op typmod',
  FuncCall: `funcname args agg_order agg_filter over agg_within_group agg_star agg_distinct func_variadic funcformat`,
  NamedArgExpr: 'name arg argnumber',
  GroupingFunc: 'args refs',
  GroupingSet: 'kind content',
  WindowDef: 'name refname partitionClause orderClause frameOptions startOffset endOffset',
  SortBy: 'node sortby_dir sortby_nulls',
  RangeVar: 'catalogname schemaname relname inh relpersistence alias',
  RangeSubselect: 'lateral subquery alias',
  RangeFunction: 'lateral ordinality functions alias coldeflist',
  ColumnDef: 'colname typeName is_local',
  JoinExpr: 'jointype isNatural larg rarg usingClause quals alias join_using_alias',
  Alias: 'aliasname colnames',
  ParamRef: 'number',
  List: 'items',
  String: 'sval',
  Integer: 'ival',
  Float: 'fval',
  Boolean: 'boolval',
}
const fieldsOf = new Map(
  Object.entries(shapes).map(([node, fields]) => [node, new Set(`${fields} location`.trim().split(/\s+/))]),
)

/** Fields whose node the parser prints without the node's name. */
const untagged: Record<string, string> = {
  withClause: 'WithClause',
  typeName: 'TypeName',
  alias: 'Alias',
  join_using_alias: 'Alias',
  over: 'WindowDef',
}

const explainOptions = new Set([
  'verbose',
  'costs',
  'settings',
  'buffers',
  'format',
  'summary',
  'memory',
  'generic_plan',
])

/**
 * Returns the statements of a text. Throws if the text does not parse, or the parser is not loaded.
 */
export function parsePostgres(text: string): { stmt?: SqlNode }[] {
  if (!parseSync) throw new Error('the parser is not loaded')
  return (parseSync(text) as { stmts?: { stmt?: SqlNode }[] }).stmts ?? []
}

/**
 * Decides whether a text for PostgreSQL only reads. The server's own grammar parses it, and lists
 * say which nodes, functions, operators, types and relations are allowed.
 */
export function inspectPostgres(text: string): SqlFinding {
  if (!parseSync) return { readOnly: false, reason: 'the parser is not loaded' }
  // Refuses a backslash, because outside a literal it is a psql command, and inside a literal the
  // server's setting `standard_conforming_strings` decides where the literal ends.
  if (text.includes('\\')) return { readOnly: false, reason: 'a backslash' }
  if (text.trim() === '') return { readOnly: false, reason: 'no statement' }
  let statements: { stmt?: SqlNode }[]
  try {
    statements = parsePostgres(text)
  } catch (error) {
    return { readOnly: false, reason: `not parsed: ${(error as Error).message}` }
  }
  if (statements.length === 0) return { readOnly: false, reason: 'no statement' }
  try {
    for (const { stmt } of statements) {
      const kind = tagOf(stmt)
      if (kind !== 'SelectStmt' && kind !== 'ExplainStmt' && kind !== 'VariableShowStmt') throw new BoundRefusal(kind)
      walkTagged(stmt as SqlNode, functionColumnsOf(stmt))
      // Limits an EXPLAIN too: it makes no rows, but the server computes the constants in it.
      if (kind === 'SelectStmt') checkBounds(stmt)
      if (kind === 'ExplainStmt') checkGrowth((stmt as { ExplainStmt: SqlNode }).ExplainStmt.query, 1)
    }
  } catch (error) {
    if (error instanceof BoundRefusal) return { readOnly: false, reason: error.message }
    throw error
  }
  return { readOnly: true, reason: statements.map(({ stmt }) => tagOf(stmt)).join(', ') }
}

function tagOf(node: unknown): string {
  const keys = node !== null && typeof node === 'object' ? Object.keys(node) : []
  return keys.length === 1 ? keys[0]! : 'unknown node'
}

function walkTagged(node: SqlNode, aliases: FunctionColumns): void {
  const tag = tagOf(node)
  if (!fieldsOf.has(tag)) throw new BoundRefusal(`node ${tag}`)
  walk(tag, (node[tag] ?? {}) as SqlNode, aliases)
}

function walk(tag: string, node: SqlNode, aliases: FunctionColumns): void {
  checks[tag]?.(node, aliases)
  for (const [field, value] of Object.entries(node)) {
    if (!fieldsOf.get(tag)!.has(field)) throw new BoundRefusal(`${tag}.${field}`)
    if (tag === 'A_Const' || value === null || typeof value !== 'object') continue
    if ((field === 'larg' || field === 'rarg') && tag === 'SelectStmt') walk('SelectStmt', value as SqlNode, aliases)
    else if (untagged[field] && !Array.isArray(value)) walk(untagged[field], value as SqlNode, aliases)
    else for (const entry of Array.isArray(value) ? value : [value]) walkItem(entry, aliases)
  }
}

function walkItem(entry: unknown, aliases: FunctionColumns): void {
  // Skips an empty node, which is the list of a `DISTINCT` without ON.
  if (entry === null || typeof entry !== 'object' || Object.keys(entry).length === 0) return
  walkTagged(entry as SqlNode, aliases)
}

/** Checks of a node, by its name, besides the list of its fields. */
const checks: Record<string, (node: SqlNode, aliases: FunctionColumns) => void> = {
  SelectStmt: checkColumns,
  FuncCall: checkFunction,
  RangeVar(node) {
    const name = String(node.relname)
    if (secretRelations.has(name)) throw new BoundRefusal(`relation ${name}`)
  },
  VariableShowStmt(node) {
    if (isSecretSetting(String(node.name))) throw new BoundRefusal(`setting ${String(node.name)}`)
  },
  ExplainStmt(node) {
    if (tagOf(node.query) !== 'SelectStmt') throw new BoundRefusal(`EXPLAIN of ${tagOf(node.query)}`)
    for (const option of (node.options ?? []) as { DefElem?: SqlNode }[]) {
      const name = String(option.DefElem?.defname).toLowerCase()
      if (!explainOptions.has(name)) throw new BoundRefusal(`EXPLAIN ${name}`)
    }
  },
  CommonTableExpr(node) {
    if (tagOf(node.ctequery) !== 'SelectStmt') throw new BoundRefusal(`WITH ${tagOf(node.ctequery)}`)
  },
  A_Expr: (node) => checkOperator(strings(node.name)),
  SubLink: (node) => node.operName !== undefined && checkOperator(strings(node.operName)),
  TypeName(node) {
    const name = unqualified(strings(node.names), 'type')
    if (!types.has(name)) throw new BoundRefusal(`type ${name}`)
    checkTypeWidth(node, name)
  },
  CollateClause: (node) => void unqualified(strings(node.collname), 'collation'),
  ColumnRef(node, aliases) {
    const name = mayCall(strings(node.fields), aliases)
    if (name !== null) throw new BoundRefusal(`column ${strings(node.fields).join('.')} may call ${name}`)
  },
  /** Checks `(value).name`, which calls the function `name` if the value is not a row. */
  A_Indirection(node) {
    for (const name of strings(node.indirection)) {
      if (!functionColumns.has(name)) throw new BoundRefusal(`( ).${name} may call ${name}`)
    }
  },
}

function checkFunction(node: SqlNode): void {
  const name = unqualified(strings(node.funcname), 'function')
  // Refuses `pg_stat_get_wal_receiver`, because a column of the view over it is hidden.
  const family = name.startsWith('pg_stat_get_') && name !== 'pg_stat_get_wal_receiver'
  if (!family && !readFunctions.has(name)) throw new BoundRefusal(`function ${name}`)
  checkWidth(node, name)
  if (name !== 'current_setting') return
  const setting = ((node.args as SqlNode[] | undefined)?.[0] as { A_Const?: { sval?: { sval?: string } } })?.A_Const
    ?.sval
  if (setting?.sval === undefined) throw new BoundRefusal('current_setting of a computed name')
  if (isSecretSetting(setting.sval)) throw new BoundRefusal(`setting ${setting.sval}`)
}

function checkOperator(names: string[]): void {
  const name = unqualified(names, 'operator')
  if (!operators.has(name)) throw new BoundRefusal(`operator ${name}`)
}

/** Returns a name without its schema, which may only be the built-in one. */
function unqualified(names: string[], noun: string): string {
  const builtIn = names.length === 1 || (names.length === 2 && names[0] === 'pg_catalog')
  if (!builtIn) throw new BoundRefusal(`${noun} ${names.join('.')}`)
  return names.at(-1)!
}
