import { parsePostgres } from './postgres.ts'
import { type SqlNode, strings } from './postgres-nodes.ts'
import { compares, listTorn, ofOthers, telling } from './postgres-torn.ts'

/**
 * Finds, by their origin, other users' statements and code in an answer. The values of such
 * statements and code are hidden in any form.
 */

/** Matches relations that show other users' statements; functions that do are in `ofOthers`. */
const relations =
  /\b(?:pg_stat_activity|pg_stat_statements|pg_stat_monitor|pg_store_plans|pg_qualstats\w*|pg_prepared_statements?|pg_cursors?|pg_(?:views|matviews|rules|policies|indexes))\b|\binformation_schema"?\."?(?:views|columns|domains|attributes|parameters|check_constraints|triggers|routines)\b/

/**
 * Whether a statement may show other users' statements or code. `texts`: the names in the
 * statement, and the text of each view behind it.
 */
export const showsStatements = (texts: readonly string[]): boolean =>
  texts.some((each) => relations.test(each) || (each.match(/\w+/g) ?? []).some((word) => ofOthers.test(word)))

/**
 * Names of columns and functions that return other users' statements or code. `spread` adds the
 * names that the statement itself gives to these columns.
 */
const columns =
  'query statement pg_stat_get_backend_activity definition indexdef qual with_check view_definition column_default parameter_default domain_default check_clause action_statement action_condition'.split(
    ' ',
  )

/**
 * Returns the names under which a statement and the views behind it return other users' statements
 * or code, and why a view shows such a text in parts.
 */
export function followStatements(sql: string, views: readonly string[]): { names: Names; torn: string | null } {
  const parsed = [sql, ...views].map((each) => parsePostgres(each))
  const names: Names = new Set(columns)
  for (let before = 0; before < names.size; ) {
    before = names.size
    spread(parsed, names)
  }
  const [torn] = [...listTorn(parsed.slice(1))].filter(
    ({ node }) => node.funcname !== undefined || isTainted({ ColumnRef: node }, names),
  )
  return { names, torn: torn ? `a view cuts it with ${torn.by}` : null }
}

type Names = Set<string>

const isTainted = (node: unknown, tainted: Names): boolean => {
  if (node === null || typeof node !== 'object') return false
  return Object.entries(node).some(([tag, inner]) => {
    if (tag === 'ColumnRef') return tainted.has(strings((inner as SqlNode).fields).at(-1) ?? '')
    if (tag === 'FuncCall' && telling.has(calledIn(inner as SqlNode))) return false
    if (tag === 'A_Expr' && compares(inner as SqlNode)) return false
    return (tag === 'FuncCall' && ofOthers.test(calledIn(inner as SqlNode))) || isTainted(inner, tainted)
  })
}

const calledIn = ({ funcname }: SqlNode): string => strings(funcname).at(-1) ?? ''

/** Adds the names under which a part of a statement returns other users' statements or code. */
function spread(node: unknown, tainted: Names): void {
  if (node === null || typeof node !== 'object') return
  const part = node as SqlNode
  for (const [tag, inner] of Object.entries(part)) {
    if (tag === 'SelectStmt' || tag === 'larg' || tag === 'rarg') addAll(tainted, listHanded(inner as SqlNode, tainted))
    spread(inner, tainted)
  }
  const alias = part.alias as { aliasname?: string; colnames?: unknown } | undefined
  const colnames = strings(alias?.colnames ?? part.aliascolnames)
  if (part.functions !== undefined) {
    if (isTainted(part.functions, tainted)) addAll(tainted, [alias?.aliasname ?? '', ...colnames])
    return
  }
  if (colnames.length === 0) return
  const query = ((part.ctequery ?? part.subquery) as SqlNode | undefined)?.SelectStmt as SqlNode | undefined
  addAll(tainted, query ? listHanded(query, tainted, colnames) : colnames)
}

function addAll(tainted: Names, names: readonly string[]): void {
  for (const each of names) tainted.add(each)
}

/**
 * Lists the columns of a query that contain other users' statements or code, by position if no star
 * precedes them.
 */
function listHanded(select: SqlNode, tainted: Names, colnames: readonly string[] = []): string[] {
  const sides = listSides(select)
  const isStarred = sides.some((targets) => JSON.stringify(targets).includes('"A_Star"'))
  const [first = []] = sides
  return first.flatMap((target, at) => {
    const isHanded = sides.some((targets) => isTainted(isStarred ? targets : targets[at], tainted))
    // Judges each column by itself if the query is no union, even if it has a star too.
    const isOwn = sides.length === 1 && isStarred ? isTainted(target, tainted) : isHanded
    const named = colnames[at]
    if (isStarred && colnames.length > 0) return colnames
    return isOwn ? (named === undefined ? namesOf(target) : [named]) : []
  })
}

/** Returns the columns of each side of a union. The first side names the columns of all. */
function listSides({ larg, rarg, targetList }: SqlNode): SqlNode[][] {
  if (larg) return [...listSides(larg as SqlNode), ...listSides(rarg as SqlNode)]
  return [((targetList ?? []) as { ResTarget?: SqlNode }[]).map(({ ResTarget: target }) => target ?? {})]
}

/**
 * Returns the names of a column. An unnamed column has the name of what makes it: a function, a
 * type, or a word of the grammar.
 */
function namesOf({ name, val }: SqlNode): string[] {
  if (name !== undefined) return [String(name)]
  const [tag] = Object.keys((val ?? {}) as object)
  if (tag === 'ColumnRef') return []
  const called = [...JSON.stringify(val).matchAll(/"String":\{"sval":"([^"]*)"/g)].map(([, each]) => each!)
  return ['coalesce', 'case', 'greatest', 'least', ...called]
}
