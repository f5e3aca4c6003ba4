import { BoundRefusal, numberOf, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Limits the text that a statement builds, such as by `x || x` or quotes within quotes, where each
 * step doubles the step before it. Thirty steps make a gigabyte of one letter, in memory that no
 * time limit frees soon enough. So each column of each query gets a weight: how often it contains
 * each source column, and how many characters it has that are from no column.
 */

/** Most copies of a column in one value. */
const maxTimes = 16
/** Most characters that come from no table. */
const maxCharacters = 100_000
/** Most rows that functions in FROM make of texts in the statement. */
const maxRows = 100_000

/** The weight by name of the column, after a dot; `` for characters of the statement itself. */
type Weight = Readonly<Record<string, number>>
type Columns = ReadonlyMap<string, Weight>
type Scope = { columns: Columns; named: ReadonlyMap<string, [string, Weight][]>; made: { rows: number } }

const words = (text: string) => new Set(text.split(' '))

/** Functions that join all their arguments; any other function returns at most one argument. */
const building = words(
  'concat concat_ws format overlay string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg array_append array_prepend array_cat array_to_string string_to_array regexp_split_to_array json_object jsonb_object jsonb_set',
)
/** Functions that double each quote, or each character. */
const escaping =
  /^(?:quote_\w+|encode|to_jsonb?|row_to_json|array_to_json|jsonb?_build_\w+|jsonb?_(?:object_)?agg|jsonb_pretty|jsonb?_object|format|similar_to_escape|like_escape)$/
const collecting = words('string_agg array_agg json_agg jsonb_agg json_object_agg jsonb_object_agg')
/** Number of rows that is assumed for a constant that an aggregate collects. */
const collectedRows = 1_000
/** Functions that make several rows of one value. */
const splitting =
  /^(?:unnest|regexp_split_to_table|regexp_matches|string_to_table|generate_subscripts|jsonb?_(?:array_elements|each|path_query|object_keys)\w*)$/
const textTypes = words('text varchar bpchar name json jsonb bytea')

/**
 * Throws if a statement makes too much of a text. `rows`: number of rows of the statement's series.
 */
export function checkGrowth(statement: unknown, rows: number): void {
  const select = (statement as { SelectStmt?: SqlNode } | undefined)?.SelectStmt
  if (select) weighQuery(select, { columns: new Map(), named: new Map(), made: { rows } })
}

/** Returns the weights of a query's columns, by name. */
function weighQuery(select: SqlNode, outer: Scope): [name: string, weight: Weight][] {
  const named = new Map(outer.named)
  const ctes = (select.withClause as SqlNode | undefined)?.ctes as { CommonTableExpr?: SqlNode }[] | undefined
  for (const { CommonTableExpr: cte = {} } of ctes ?? []) {
    const query = (cte.ctequery as { SelectStmt?: SqlNode } | undefined)?.SelectStmt
    if (!query) continue
    const names = strings(cte.aliascolnames)
    const isRepeated = query.larg !== undefined && JSON.stringify(query.rarg).includes(`"relname":"${cte.ctename}"`)
    const columns = isRepeated
      ? weighRepeated(query, { name: String(cte.ctename), names }, { ...outer, named })
      : weighQuery(query, { ...outer, named })
    named.set(
      String(cte.ctename),
      columns.map(([name, weight], at) => [names[at] ?? name, weight]),
    )
  }
  if (select.larg) {
    const [left, right] = [select.larg, select.rarg].map((each) => weighQuery(each as SqlNode, { ...outer, named }))
    return left!.map(([name, weight], at) => [name, most([weight, right![at]?.[1] ?? {}])])
  }
  const columns = new Map(outer.columns)
  const own = new Map<string, Weight>()
  const scope = { columns, named, made: outer.made }
  for (const item of (select.fromClause as SqlNode[] | undefined) ?? []) readFrom(item, scope, own)
  const listed = ((select.valuesLists as { List?: { items?: unknown[] } }[] | undefined) ?? []).map(({ List }) =>
    (List?.items ?? []).map((each) => weigh(each, scope)),
  )
  if (listed.length > 0) return listed[0]!.map((_, at) => [`column${at + 1}`, most(listed.map((row) => row[at] ?? {}))])
  const answers = ((select.targetList as { ResTarget?: SqlNode }[] | undefined) ?? []).flatMap(
    ({ ResTarget: target = {} }): [string, Weight][] => {
      if (isStar(target.val)) return [...own]
      return [[nameOf(target), bounded(weigh(target.val, scope))]]
    },
  )
  for (const part of ['whereClause', 'groupClause', 'havingClause', 'sortClause', 'distinctClause'])
    weighAll(select[part], scope)
  return answers
}

/** Weighs a recursion, in which a step's text may only grow by what the step adds. */
function weighRepeated(
  query: SqlNode,
  { name, names }: { name: string; names: readonly string[] },
  scope: Scope,
): [name: string, weight: Weight][] {
  const first = weighQuery(query.larg as SqlNode, scope)
  const before = first.map(([column], at): [string, Weight] => [names[at] ?? column, { [`!${at}`]: 1 }])
  const next = weighQuery(query.rarg as SqlNode, { ...scope, named: new Map([...scope.named, [name, before]]) })
  // Skips a number, which counts and is made of no text.
  const isText = (at: number) => Object.keys(next[at]?.[1] ?? {}).some((each) => each.startsWith('!'))
  const grown = (weight: Weight) =>
    Object.entries(weight).some(([each, count]) => each.startsWith('!') && count > 1 && isText(Number(each.slice(1))))
  if (next.some(([, weight]) => grown(weight)))
    throw new BoundRefusal('a recursion whose texts grow by themselves: add a column of a table, or a number')
  return first.map(([column, weight], at) => {
    const added = Object.entries(next[at]?.[1] ?? {}).filter(([each]) => !each.startsWith('!'))
    return [column, most([weight, Object.fromEntries(added)])]
  })
}

const isStar = (node: unknown): boolean => {
  const fields = ((node as SqlNode | undefined)?.ColumnRef as SqlNode | undefined)?.fields as SqlNode[] | undefined
  return fields?.at(-1)?.A_Star !== undefined
}

function readFrom(item: SqlNode, scope: Scope, own: Map<string, Weight>): void {
  const [tag = '', value] = Object.entries(item)[0] ?? []
  const node = (value ?? {}) as SqlNode
  const { aliasname, colnames } = (node.alias ?? {}) as { aliasname?: string; colnames?: unknown }
  /** Adds the alias of the whole table, which means a row of all its columns. */
  const addRows = (columns: [string, Weight][], as: string) => {
    const row = times(sum(columns.map(([, weight]) => weight)), 2)
    add(new Map([...rename(columns, strings(colnames)), ...(columns.length > 0 ? [[as, row] as const] : [])]))
  }
  const add = (columns: Columns) => {
    for (const [name, weight] of columns) {
      ;(scope.columns as Map<string, Weight>).set(name, most([scope.columns.get(name) ?? {}, weight]))
      own.set(name, most([own.get(name) ?? {}, weight]))
    }
  }
  if (tag === 'JoinExpr') {
    readFrom(node.larg as SqlNode, scope, own)
    readFrom(node.rarg as SqlNode, scope, own)
    weighAll(node.quals, scope)
  } else if (tag === 'RangeVar') {
    const known = node.schemaname === undefined ? scope.named.get(String(node.relname)) : undefined
    if (known) addRows(known, aliasname ?? String(node.relname))
  } else if (tag === 'RangeSubselect') {
    const query = (node.subquery as { SelectStmt?: SqlNode } | undefined)?.SelectStmt
    if (query) addRows(weighQuery(query, scope), aliasname ?? '')
  } else if (tag === 'RangeFunction') {
    for (const call of callsIn(node.functions)) {
      const weights = weighArguments(call, scope)
      countRows(call, weights, scope)
      const weight = bounded(weighCall(call, weights))
      const name = strings(call.funcname).at(-1) ?? ''
      add(
        new Map([aliasname ?? name, name, 'value', 'key', ...strings(colnames)].map((each) => [each, weight] as const)),
      )
    }
  }
}

const callsIn = (functions: unknown): SqlNode[] =>
  ((functions ?? []) as { List?: { items?: { FuncCall?: SqlNode }[] } }[]).flatMap(({ List }) =>
    (List?.items ?? []).flatMap(({ FuncCall }) => (FuncCall ? [FuncCall] : [])),
  )

/**
 * Counts the rows that a function makes of a text: a text without a column makes at most as many
 * rows as it has characters.
 */
function countRows({ funcname, args }: SqlNode, [weight = {}]: readonly Weight[], { made }: Scope): void {
  if (!splitting.test(strings(funcname).at(-1) ?? '')) return
  const [first] = (args as SqlNode[] | undefined) ?? []
  const inner = ((first?.TypeCast as SqlNode | undefined)?.arg as SqlNode | undefined) ?? first
  const listed = ((inner?.A_ArrayExpr as SqlNode | undefined)?.elements as unknown[] | undefined)?.length
  made.rows *= Math.max(1, listed ?? Math.floor(weight[''] ?? 1))
  if (made.rows > maxRows) throw new BoundRefusal(`more than ${maxRows} rows`)
}

/** Renames columns, in order. If a star hides the order, each gets the weight of all. */
function rename(columns: [string, Weight][], names: readonly string[]): Columns {
  const merged = new Map<string, Weight>()
  const add = (name: string, weight: Weight) => void merged.set(name, most([merged.get(name) ?? {}, weight]))
  for (const [at, [name, weight]] of columns.entries()) add(names[at] ?? name, weight)
  return merged
}

function nameOf({ name, val }: SqlNode): string {
  if (name !== undefined) return String(name)
  const [tag = '', node] = Object.entries((val ?? {}) as object)[0] ?? []
  if (tag === 'ColumnRef') return strings((node as SqlNode).fields).at(-1) ?? ''
  if (tag === 'FuncCall') return strings((node as SqlNode).funcname).at(-1) ?? ''
  if (tag === 'TypeCast') return nameOf({ val: (node as SqlNode).arg })
  const word = { CoalesceExpr: 'coalesce', CaseExpr: 'case', A_ArrayExpr: 'array', RowExpr: 'row' }[tag]
  return word ?? '?column?'
}

function weigh(node: unknown, scope: Scope): Weight {
  const [tag = '', value] = Object.entries((node ?? {}) as SqlNode)[0] ?? []
  const inner = (value ?? {}) as SqlNode
  const all = (list: unknown) => ((list ?? []) as unknown[]).map((each) => weigh(each, scope))
  switch (tag) {
    case 'ColumnRef': {
      const name = strings(inner.fields).at(-1)
      return name === undefined ? {} : (scope.columns.get(name) ?? { [`.${name}`]: 1 })
    }
    case 'A_Const':
      return { '': (inner.sval as { sval?: string } | undefined)?.sval?.length ?? 0 }
    case 'FuncCall':
      return weighCall(inner, weighArguments(inner, scope))
    case 'A_Expr':
      return weighOperator(inner, scope)
    case 'TypeCast': {
      const type = strings((inner.typeName as SqlNode | undefined)?.names).at(-1) ?? ''
      const isList = (inner.typeName as SqlNode | undefined)?.arrayBounds !== undefined
      const weight = weigh(inner.arg, scope)
      return type === 'bytea' ? times(weight, 2) : textTypes.has(type) || isList ? weight : {}
    }
    case 'A_ArrayExpr':
      return bounded(times(sum(all(inner.elements)), 2))
    case 'RowExpr':
      return bounded(times(sum(all(inner.args)), 2))
    case 'List':
      return sum(all(inner.items))
    case 'CoalesceExpr':
    case 'MinMaxExpr':
      return most(all(inner.args))
    case 'CaseExpr':
      weighAll(inner.arg, scope)
      return most([...all(inner.args), weigh(inner.defresult, scope)])
    case 'CaseWhen':
      weighAll(inner.expr, scope)
      return weigh(inner.result, scope)
    case 'SubLink': {
      const query = (inner.subselect as { SelectStmt?: SqlNode } | undefined)?.SelectStmt
      const [first] = query ? weighQuery(query, scope) : []
      weighAll(inner.testexpr, scope)
      return inner.subLinkType === 'EXISTS_SUBLINK' || inner.subLinkType === 'ANY_SUBLINK' ? {} : (first?.[1] ?? {})
    }
    case 'CollateClause':
    case 'A_Indirection':
      return weigh(inner.arg, scope)
    default:
      for (const each of Object.values(inner)) if (each !== null && typeof each === 'object') weighAll(each, scope)
      return {}
  }
}

function weighOperator({ kind, name, lexpr, rexpr }: SqlNode, scope: Scope): Weight {
  const sign = strings(name).at(-1) ?? ''
  const [left, right] = [weigh(lexpr, scope), weigh(rexpr, scope)]
  if (kind === 'AEXPR_NULLIF' || /^(?:->>?|#>>?)$/.test(sign)) return left
  return sign === '||' ? bounded(sum([left, right])) : {}
}

/** Weighs arguments, and an aggregate's order, which has the value of `mode()`. */
function weighArguments({ args, agg_order, agg_filter, over }: SqlNode, scope: Scope): Weight[] {
  weighAll([agg_filter, { over }], scope)
  const ordered = ((agg_order ?? []) as { SortBy?: SqlNode }[]).map(({ SortBy }) => SortBy?.node)
  return [...((args ?? []) as unknown[]), ...ordered].map((each) => weigh(each, scope))
}

function weighCall({ funcname, args }: SqlNode, weights: readonly Weight[]): Weight {
  const name = strings(funcname).at(-1) ?? ''
  const list = (args as SqlNode[] | undefined) ?? []
  if (name === 'lpad' || name === 'rpad') return bounded({ '': numberOf(list[1]) ?? 0 })
  if (/^(?:left|right|substr|substring)$/.test(name) && (numberOf(list.at(-1)) ?? -1) >= 0 && list.length > 1) {
    const most = numberOf(list.at(-1))!
    if (most <= maxTimes) return { '': most }
  }
  const escaped = escaping.test(name) ? 2 : 1
  const [first = {}] = weights
  if (name === 'replace' || name === 'regexp_replace') {
    const [found, put] = [weights[1]?.[''] ?? 0, weights[2]?.[''] ?? 0]
    return bounded(times(first, Math.max(1, name === 'replace' ? put / Math.max(1, found) : put + 1)))
  }
  if (name === 'array_to_string') return bounded(times(first, Math.max(1, weights[1]?.[''] ?? 1)))
  if (!building.has(name) && escaped === 1) return most(weights)
  const built = times(sum(weights), escaped)
  return bounded(collecting.has(name) ? { ...built, '': (built[''] ?? 0) * collectedRows } : built)
}

/** Weighs the parts of a node that makes no text itself. */
function weighAll(value: unknown, scope: Scope): Weight {
  for (const node of Array.isArray(value) ? value : [value]) weigh(node, scope)
  return {}
}

function sum(weights: readonly Weight[]): Weight {
  const total: Record<string, number> = {}
  for (const each of weights) for (const [name, count] of Object.entries(each)) total[name] = (total[name] ?? 0) + count
  return total
}

function most(weights: readonly Weight[]): Weight {
  const total: Record<string, number> = {}
  for (const each of weights)
    for (const [name, count] of Object.entries(each)) total[name] = Math.max(total[name] ?? 0, count)
  return total
}

const times = (weight: Weight, factor: number): Weight =>
  Object.fromEntries(Object.entries(weight).map(([name, count]) => [name, count * factor]))

function bounded(weight: Weight): Weight {
  for (const [name, count] of Object.entries(weight)) {
    if (name === '' && count > maxCharacters)
      throw new BoundRefusal(`a text of more than ${maxCharacters} characters that are in no table`)
    if (name !== '' && count > maxTimes)
      throw new BoundRefusal(`a text that holds ${name.slice(1)} more than ${maxTimes} times, made step by step`)
  }
  return weight
}
