import { parsePostgres } from './postgres.ts'
import { numberOf, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Statements of other sessions within an answer. Their values are hidden by following their quotes from the beginning, so nothing may come before it,
 * be cut off there, or be folded into something else; what only compares them shows nothing of them.
 */

/** Relations and functions that show statements of sessions. */
const ofSessions =
  /\b(?:pg_stat_activity|pg_stat_statements|pg_stat_monitor|pg_store_plans|pg_qualstats\w*|pg_stat_get_backend_activity|pg_stat_get_activity|pg_prepared_statements?|pg_cursors?)\b/

/** `texts`: the names that a statement uses, and the text of each view behind them. */
export const showsStatements = (texts: readonly string[]): boolean => texts.some((each) => ofSessions.test(each))

/** Names of such columns; more by other names are found. */
const columns = ['query', 'statement', 'pg_stat_get_backend_activity']

/** What says something about a text, and what leaves it whole or only its beginning. */
const telling = new Set('length char_length character_length octet_length count md5 hashtext starts_with'.split(' '))
const keeping = new Set(
  'left substr substring min max any_value first_value last_value nth_value lag lead mode lower upper btrim ltrim rtrim'.split(
    ' ',
  ),
)
const keepingTypes = new Set(['text', 'varchar', 'bpchar', 'name'])
const comparing = new Set('= <> != < > <= >= ~~ !~~ ~~* !~~* ~ !~ ~* !~* ^@'.split(' '))
const comparingKinds = /^AEXPR_(?:DISTINCT|NOT_DISTINCT|IN|LIKE|ILIKE|SIMILAR|BETWEEN\w*|NOT_BETWEEN\w*|OP_ANY|OP_ALL)$/
/** Parts of a query that choose and order rows, and conditions. */
const choosing = new Set('whereClause havingClause groupClause sortClause quals limitCount agg_filter over'.split(' '))
const conditions = new Set(['BoolExpr', 'NullTest', 'BooleanTest'])
/** Nodes that hand on what stands in them. */
const handing = new Set(
  'ResTarget List SelectStmt SubLink CoalesceExpr MinMaxExpr CaseExpr CaseWhen CollateClause SortBy WindowDef WithClause CommonTableExpr JoinExpr RangeSubselect ExplainStmt'.split(
    ' ',
  ),
)

/**
 * The reason why a statement of a session would be shown in a way that loses where its values begin. `views`: what stands behind the names of the
 * statement; `wholeRows`: it takes a row as a value.
 */
export function findTornStatement(sql: string, views: readonly string[], wholeRows: boolean): string | null {
  const parsed = [sql, ...views].map((each) => parsePostgres(each))
  const tainted = new Set(columns)
  for (let before = 0; before < tainted.size; ) {
    before = tainted.size
    spread(parsed, tainted)
  }
  const torn = wholeRows ? 'a row as one value' : findTearing(parsed, tainted, null)
  return torn
    ? `${torn} beside the column query may show the values of others' statements: show query, left(query, 100) or count(*) instead`
    : null
}

type Names = Set<string>

const isTainted = (node: unknown, tainted: Names): boolean => {
  if (node === null || typeof node !== 'object') return false
  return Object.entries(node).some(([tag, inner]) =>
    tag === 'ColumnRef'
      ? tainted.has(strings((inner as SqlNode).fields).at(-1) ?? '')
      : (tag === 'FuncCall' && isOfSessions(inner as SqlNode)) || isTainted(inner, tainted),
  )
}

const isOfSessions = ({ funcname }: SqlNode): boolean => ofSessions.test(strings(funcname).at(-1) ?? '')

/** Adds the names under which a part of a statement hands such a text on. */
function spread(node: unknown, tainted: Names): void {
  if (node === null || typeof node !== 'object') return
  const part = node as SqlNode
  for (const [tag, inner] of Object.entries(part)) {
    if (tag === 'SelectStmt' || tag === 'larg' || tag === 'rarg') addAll(tainted, listHanded(inner as SqlNode, tainted))
    spread(inner, tainted)
  }
  const colnames = strings((part.alias as SqlNode | undefined)?.colnames ?? part.aliascolnames)
  if (colnames.length === 0) return
  const query = ((part.ctequery ?? part.subquery) as SqlNode | undefined)?.SelectStmt as SqlNode | undefined
  // An unknown function in FROM names its columns itself.
  if (query) addAll(tainted, listHanded(query, tainted, colnames))
  else if (part.functions === undefined || ofSessions.test(JSON.stringify(part.functions))) addAll(tainted, colnames)
}

function addAll(tainted: Names, names: readonly string[]): void {
  for (const each of names) tainted.add(each)
}

/** Names of the columns of a query that hold such a text: by their place where no star stands before them. */
function listHanded(select: SqlNode, tainted: Names, colnames: readonly string[] = []): string[] {
  const sides = listSides(select)
  const isStarred = sides.some((targets) => JSON.stringify(targets).includes('"A_Star"'))
  const [first = []] = sides
  return first.flatMap((target, at) => {
    const isHanded = sides.some((targets) => isTainted(isStarred ? targets : targets[at], tainted))
    // One side alone has its own names, whatever a star adds.
    const isOwn = sides.length === 1 && isStarred ? isTainted(target, tainted) : isHanded
    const named = colnames[at]
    if (isStarred && colnames.length > 0) return colnames
    return isOwn ? (named === undefined ? namesOf(target) : [named]) : []
  })
}

/** The first side of a union names the columns of all. */
function listSides({ larg, rarg, targetList }: SqlNode): SqlNode[][] {
  if (larg) return [...listSides(larg as SqlNode), ...listSides(rarg as SqlNode)]
  return [((targetList ?? []) as { ResTarget?: SqlNode }[]).map(({ ResTarget: target }) => target ?? {})]
}

/** A column that has no name is called after what makes it: a function, a type, a word of the grammar. */
function namesOf({ name, val }: SqlNode): string[] {
  if (name !== undefined) return [String(name)]
  const [tag] = Object.keys((val ?? {}) as object)
  if (tag === 'ColumnRef') return []
  const called = [...JSON.stringify(val).matchAll(/"String":\{"sval":"([^"]*)"/g)].map(([, each]) => each!)
  return ['coalesce', 'case', 'greatest', 'least', ...called]
}

/** What does something else with such a text than to show it from its beginning. `by`: what stands around the place already. */
function findTearing(node: unknown, tainted: Names, by: string | null): string | null {
  if (node === null || typeof node !== 'object') return null
  if (Array.isArray(node)) return firstOf(node.map((each) => findTearing(each, tainted, by)))
  return firstOf(
    Object.entries(node as SqlNode).map(([tag, inner]) => {
      if (choosing.has(tag) || conditions.has(tag) || (tag === 'A_Expr' && compares(inner as SqlNode))) return null
      if (tag === 'ColumnRef') return by !== null && isTainted({ ColumnRef: inner }, tainted) ? by : null
      if (tag === 'FuncCall') {
        const name = strings((inner as SqlNode).funcname).at(-1) ?? ''
        if (telling.has(name)) return null
        if (by !== null && isOfSessions(inner as SqlNode)) return by
        return findTearing(inner, tainted, by ?? (keeps(name, inner as SqlNode) ? null : `${name}()`))
      }
      // A query in FROM makes new rows.
      if (tag === 'RangeSubselect' || tag === 'CommonTableExpr') return findTearing(inner, tainted, null)
      return findTearing(inner, tainted, by ?? nameTearing(tag, inner as SqlNode))
    }),
  )
}

const firstOf = (found: readonly (string | null)[]): string | null => found.find((each) => each !== null) ?? null

const compares = ({ kind, name }: SqlNode): boolean =>
  comparingKinds.test(String(kind)) || (kind === 'AEXPR_OP' && comparing.has(strings(name).at(-1) ?? ''))

function keeps(name: string, { args }: SqlNode): boolean {
  const [, second] = (args as SqlNode[] | undefined) ?? []
  if (name.startsWith('substr')) return second !== undefined && (numberOf(second) ?? 2) <= 1
  if (name.endsWith('trim')) return second === undefined
  return keeping.has(name)
}

/** Null: what stands in the node is handed on as it is. */
function nameTearing(tag: string, node: SqlNode): string | null {
  if (tag === 'A_Expr') return node.kind === 'AEXPR_NULLIF' ? null : `the operator ${strings(node.name).at(-1)}`
  if (tag === 'SubLink') return node.subLinkType === 'ARRAY_SUBLINK' ? 'an array' : null
  if (tag === 'RangeFunction') return 'a function in FROM'
  if (tag === 'valuesLists') return 'VALUES'
  if (tag === 'TypeCast') {
    const { names, arrayBounds } = (node.typeName ?? {}) as SqlNode
    return keepingTypes.has(strings(names).at(-1) ?? '') && arrayBounds === undefined ? null : 'another type'
  }
  if (!/^[A-Z]/.test(tag) || handing.has(tag)) return null
  return tag === 'A_ArrayExpr' ? 'an array' : tag === 'RowExpr' ? 'a row as one value' : tag
}
