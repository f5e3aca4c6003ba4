import { BoundRefusal, numberOf, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Checks that the parts of a FROM are joined, by an equality with a column of another table. Parts
 * that are not joined multiply their rows, and an endless recursion also multiplies rows.
 */

/** Highest number to which a recursion may count. */
const maxCount = 100_000

/** Views with one row, and tables with a few rows. */
const small = new Set(
  'pg_stat_bgwriter pg_stat_archiver pg_stat_wal pg_stat_checkpointer pg_stat_recovery_prefetch pg_stat_wal_receiver'.split(
    ' ',
  ),
)

/** A table or query in a FROM, with its names there. */
type Item = { names: string[]; isSmall: boolean }
type Link = { left: ReadonlySet<string>; right: ReadonlySet<string> }

/** Checks the joins of a query. `smallQueries`: names of WITH queries that have only a few rows. */
export function checkJoins(select: SqlNode, smallQueries: ReadonlySet<string>): void {
  const items: Item[] = []
  const links: Link[] = linksOf(select.whereClause)
  for (const item of (select.fromClause as SqlNode[] | undefined) ?? []) readFrom(item, { items, links, smallQueries })
  const many = items.filter(({ isSmall }) => !isSmall)
  if (many.length < 2) return
  const groups = many.map(({ names }) => new Set(names))
  for (const { left, right } of links) {
    const [a, b] = [find(groups, left), find(groups, right)]
    // Lets a column without a table's name join one table that is not joined yet, because it may
    // belong to any table.
    const [from, to] = [a ?? groups.find((group) => group !== b), b ?? groups.find((group) => group !== a)]
    if (!from || !to || from === to || (a === undefined && b === undefined && left.size + right.size > 0)) continue
    for (const name of to) from.add(name)
    groups.splice(groups.indexOf(to), 1)
  }
  if (groups.length > 1) throw new BoundRefusal('a join without a join condition: compare a column of each side with =')
}

const find = (groups: readonly Set<string>[], names: ReadonlySet<string>) =>
  groups.find((group) => [...names].some((name) => group.has(name)))

type FromReading = { items: Item[]; links: Link[]; smallQueries: ReadonlySet<string> }

function readFrom(item: SqlNode, reading: FromReading): void {
  const [tag = '', value] = Object.entries(item)[0] ?? []
  const node = (value ?? {}) as SqlNode
  const alias = (node.alias as { aliasname?: string } | undefined)?.aliasname
  if (tag === 'JoinExpr') {
    const from = reading.items.length
    readFrom(node.larg as SqlNode, reading)
    const between = reading.items.length
    readFrom(node.rarg as SqlNode, reading)
    reading.links.push(...linksOf(node.quals))
    const [left, right] = [reading.items.slice(from, between), reading.items.slice(between)]
    const namesOf = (items: readonly Item[]) => new Set(items.flatMap(({ names }) => names))
    if (node.usingClause !== undefined) reading.links.push({ left: namesOf(left), right: namesOf(right) })
    if (alias) for (const each of reading.items.slice(from)) each.names.push(alias)
  } else if (tag === 'RangeVar') {
    const name = String(node.relname)
    const isSmall = small.has(name) || (node.schemaname === undefined && reading.smallQueries.has(name))
    reading.items.push({ names: [alias ?? name], isSmall })
  } else if (tag === 'RangeSubselect') {
    const inner = (node.subquery as { SelectStmt?: SqlNode } | undefined)?.SelectStmt ?? {}
    const name = alias ?? ''
    reading.items.push({ names: [name], isSmall: isSmallQuery(inner) })
    if (node.lateral === true)
      reading.links.push(
        ...linksInside(inner).map(({ left, right }) => ({
          left: new Set([name]),
          right: new Set([...left, ...right]),
        })),
      )
  }
  // Skips functions, whose rows are limited elsewhere (`checkBounds`).
}

function linksInside(select: SqlNode): Link[] {
  const links = linksOf(select.whereClause)
  for (const item of (select.fromClause as SqlNode[] | undefined) ?? [])
    readFrom(item, { items: [], links, smallQueries: new Set() })
  return links
}

/**
 * Whether a query returns few rows: it aggregates all rows, has no FROM, has a limit of at most
 * 100, or reads one setting by its name.
 */
export function isSmallQuery(select: SqlNode): boolean {
  if (select.op !== undefined && select.op !== 'SETOP_NONE') return false
  if (select.fromClause === undefined || select.valuesLists !== undefined) return true
  const limit = numberOf(select.limitCount)
  if (limit !== null && limit <= 100) return true
  const isSum = ((select.targetList as SqlNode[] | undefined) ?? []).some((target) =>
    /"(?:count|sum|max|min|avg|bool_and|bool_or)"/.test(JSON.stringify(target)),
  )
  if (select.groupClause === undefined && isSum && !JSON.stringify(select.targetList).includes('"over"')) return true
  return JSON.stringify(select.fromClause).includes('"relname":"pg_settings"') && isOfOneName(select.whereClause)
}

const isOfOneName = (condition: unknown): boolean =>
  conjuncts(condition).some((each) => {
    const { lexpr, rexpr, name } = (each.A_Expr ?? {}) as SqlNode
    return (
      strings(name).join('') === '=' &&
      strings(((lexpr as SqlNode)?.ColumnRef as SqlNode)?.fields).at(-1) === 'name' &&
      (rexpr as SqlNode)?.A_Const !== undefined
    )
  })

function conjuncts(condition: unknown): SqlNode[] {
  if (condition === null || typeof condition !== 'object') return []
  const logic = (condition as SqlNode).BoolExpr as { boolop?: string; args?: unknown[] } | undefined
  return logic?.boolop === 'AND_EXPR' ? (logic.args ?? []).flatMap(conjuncts) : [condition as SqlNode]
}

/**
 * Lists the equalities that all rows must meet. Of alternatives it takes the equality in the first,
 * if each alternative has an equality.
 */
function linksOf(condition: unknown): Link[] {
  return conjuncts(condition).flatMap((each): Link[] => {
    const logic = each.BoolExpr as { boolop?: string; args?: unknown[] } | undefined
    if (logic?.boolop === 'OR_EXPR') {
      const all = (logic.args ?? []).map(linksOf)
      return all.every((links) => links.length > 0) ? all[0]! : []
    }
    const compared = each.A_Expr as SqlNode | undefined
    if (!compared) return []
    const isEqual = ['AEXPR_OP', 'AEXPR_OP_ANY', 'AEXPR_IN'].includes(String(compared.kind))
      ? strings(compared.name).join('') === '='
      : compared.kind === 'AEXPR_NOT_DISTINCT'
    if (!isEqual || !(isColumn(compared.lexpr) || isColumn(compared.rexpr))) return []
    const [left, right] = [namesIn(compared.lexpr), namesIn(compared.rexpr)]
    // Skips constants, which join nothing, and two columns of one table.
    if (left === null || right === null || [...left].some((name) => right.has(name))) return []
    return [{ left, right }]
  })
}

const isColumn = (node: unknown): boolean => {
  const inner = (node ?? {}) as SqlNode
  return inner.ColumnRef !== undefined || (inner.TypeCast !== undefined && isColumn((inner.TypeCast as SqlNode).arg))
}

/**
 * Lists the tables in an expression; empty if its columns have no table's name, null if it has no
 * column.
 */
function namesIn(value: unknown): Set<string> | null {
  const found = new Set<string>()
  let hasColumn = false
  const visit = (each: unknown): void => {
    if (each === null || typeof each !== 'object') return
    for (const [tag, node] of Object.entries(each as SqlNode)) {
      if (tag === 'ColumnRef') {
        hasColumn = true
        const qualifier = strings((node as SqlNode).fields).at(-2)
        if (qualifier !== undefined) found.add(qualifier)
      } else visit(node)
    }
  }
  visit(value)
  return hasColumn ? found : null
}

/**
 * Throws if a recursive query has no bound: it neither joins a table, nor counts to a literal
 * number, nor has a limit. Throws also if a text doubles in each step.
 */
export function checkRecursion(name: string, query: SqlNode): void {
  const repeated = query.rarg as SqlNode | undefined
  if (!repeated || !JSON.stringify(repeated).includes(`"relname":"${name}"`)) return
  if (doubles(repeated))
    throw new BoundRefusal('a recursion whose texts grow by themselves: add a column of a table, or a number')
  const items: Item[] = []
  const links = linksOf(repeated.whereClause)
  for (const item of (repeated.fromClause as SqlNode[] | undefined) ?? [])
    readFrom(item, { items, links, smallQueries: new Set() })
  // Accepts a recursion that joins a table to the rows of the step before, as along a chain of
  // parents.
  if (items.length > 1 && links.length > 0) return
  if (isLimited(query) || conjuncts(repeated.whereClause).some((each) => counts(each, repeated))) return
  throw new BoundRefusal('a recursion without a bound: count to a number, as n < 100, by n + 1')
}

/**
 * Whether a text may double in each step, as by `t || t`, which joins two columns of the step
 * before. Columns of two tables are allowed.
 */
function doubles(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false
  return Object.entries(value as SqlNode).some(([tag, node]) => {
    if (tag === 'A_Expr' && strings((node as SqlNode).name).join('') === '||' && countColumns(node) > 1) {
      const tables = namesIn(node)
      if (tables === null || tables.size < 2) return true
    }
    if (
      tag === 'FuncCall' &&
      /^(?:concat|concat_ws|format|array_cat|array_append|array_prepend|json\w*|overlay)$/.test(
        strings((node as SqlNode).funcname).at(-1) ?? '',
      ) &&
      countColumns(node) > 1
    )
      return (namesIn(node)?.size ?? 0) < 2
    return doubles(node)
  })
}

const countColumns = (node: unknown): number => JSON.stringify(node).split('"ColumnRef"').length - 1

function isLimited(query: SqlNode): boolean {
  const limit = numberOf(query.limitCount)
  return limit !== null && limit <= maxCount
}

/** Whether a recursion counts: `n < 100` with `n + 1`, or `n > 0` with `n - 1`. */
function counts(condition: SqlNode, repeated: SqlNode): boolean {
  const { name, lexpr, rexpr } = (condition.A_Expr ?? {}) as SqlNode
  const sign = strings(name).join('')
  const counted = columnOf(lexpr)
  const most = numberOf(rexpr)
  const step = sign.startsWith('<') && sign !== '<>' ? '+' : sign.startsWith('>') ? '-' : null
  if (step === null || counted === null || most === null || Math.abs(most) > maxCount) return false
  return ((repeated.targetList as SqlNode[] | undefined) ?? []).some((target) => {
    const next = ((target.ResTarget as SqlNode | undefined)?.val as SqlNode | undefined)?.A_Expr as SqlNode | undefined
    return (
      next !== undefined &&
      strings(next.name).join('') === step &&
      columnOf(next.lexpr) === counted &&
      (numberOf(next.rexpr) ?? 0) > 0
    )
  })
}

const columnOf = (node: unknown): string | null =>
  strings(((node as SqlNode)?.ColumnRef as SqlNode)?.fields).at(-1) ?? null
