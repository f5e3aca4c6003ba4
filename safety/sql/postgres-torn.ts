import { numberOf, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Finds where a statement splits a value or derives another from it, because a hidden part of a
 * shown value could then not be detected. A comparison shows nothing of the value.
 */

/**
 * `telling`: functions that only describe a value. `keeping`: functions that return a value whole,
 * or its beginning.
 */
export const telling: ReadonlySet<string> = new Set(
  'length char_length character_length octet_length bit_length pg_column_size count md5 hashtext starts_with num_nulls num_nonnulls json_array_length jsonb_array_length json_typeof jsonb_typeof cardinality array_length pg_typeof'.split(
    ' ',
  ),
)
const keeping = new Set(
  'left substr substring min max any_value first_value last_value nth_value lag lead mode lower upper btrim ltrim rtrim unnest'.split(
    ' ',
  ),
)
/**
 * Matches JSON functions that return a named field, whose name is checked, or the whole value as
 * JSON.
 */
const keepingJson =
  /^(?:jsonb?_(?:extract_path|extract_path_text|array_elements|array_elements_text|object_keys|pretty|strip_nulls|agg|path_query\w*)|to_jsonb?|row_to_json|array_to_json|jsonb_pretty)$/
const fieldOperators = new Set(['->', '->>', '#>', '#>>'])
const keepingTypes = new Set(['text', 'varchar', 'bpchar', 'name', 'json', 'jsonb'])
/** Matches aggregates that keep each row's value until the end. */
const collecting = /^(?:string_agg|array_agg|jsonb?_agg|jsonb?_object_agg)$/
const comparing = new Set('= <> != < > <= >= ~~ !~~ ~~* !~~* ~ !~ ~* !~* ^@ @> <@ ? ?| ?& @? @@ &&'.split(' '))
const comparingKinds = /^AEXPR_(?:DISTINCT|NOT_DISTINCT|IN|LIKE|ILIKE|SIMILAR|BETWEEN\w*|NOT_BETWEEN\w*|OP_ANY|OP_ALL)$/
/** `choosing`: parts of a query that choose rows. `conditions`: nodes that are true or false. */
const choosing = new Set('whereClause quals limitCount limitOffset agg_filter over'.split(' '))
const conditions = new Set(['BoolExpr', 'NullTest', 'BooleanTest'])
/** Nodes that return their contents unchanged. */
const handing = new Set(
  'ResTarget List SelectStmt SubLink CoalesceExpr MinMaxExpr CaseExpr CaseWhen CollateClause SortBy WindowDef WithClause CommonTableExpr JoinExpr RangeSubselect RangeFunction ExplainStmt A_Indirection A_Indices GroupingSet'.split(
    ' ',
  ),
)
/** Matches functions that return the statements of other users, or code. */
export const ofOthers: RegExp =
  /^(?:pg_stat_get_(?:backend_)?activity|pg_prepared_statement|pg_cursor|pg_get_(?:\w*def|expr|function_arguments))$/

/**
 * A value that is split. `by`: the function, operator or node that splits the value. `collects`: an
 * aggregate keeps the value for all rows. `isShown`: the value is not only compared. `cut`: the
 * most characters that are taken.
 */
export type Torn = { by: string; node: SqlNode; collects: boolean; isShown: boolean; cut: number | null }
type Around = Omit<Torn, 'by' | 'node'> & { by: string | null }

const nowhere: Around = { by: null, collects: false, isShown: true, cut: null }
const compared: Around = { ...nowhere, isShown: false }

/** Lists the columns, stars and functions with other users' texts that are split or collected. */
export function* listTorn(node: unknown, around: Around = nowhere): Generator<Torn> {
  if (node === null || typeof node !== 'object') return
  if (Array.isArray(node)) {
    for (const each of node) yield* listTorn(each, around)
    return
  }
  for (const [tag, inner] of Object.entries(node as SqlNode)) {
    if (inner === null || typeof inner !== 'object') continue
    // Reads a query in FROM as if nothing were around it, because it makes new rows.
    if (tag === 'RangeSubselect' || tag === 'CommonTableExpr') yield* listTorn(inner, nowhere)
    else if (tag === 'ColumnRef') {
      if (around.by !== null && (around.isShown || around.collects))
        yield { ...around, by: around.by, node: inner as SqlNode }
    } else if (tag === 'FuncCall') yield* ofCall(inner as SqlNode, around)
    else yield* listTorn(inner, within(tag, inner as SqlNode, around))
  }
}

function* ofCall(call: SqlNode, around: Around): Generator<Torn> {
  const name = strings(call.funcname).at(-1) ?? ''
  if (around.by !== null && around.isShown && ofOthers.test(name)) yield { ...around, by: around.by, node: call }
  const collects = collecting.test(name)
  const by = around.by ?? (collects || !keeps(name, call) ? `${name}()` : null)
  const inside = {
    by,
    collects: around.collects || collects,
    isShown: around.isShown && !telling.has(name),
    cut: cutOf(name, call),
  }
  yield* listTorn(call, inside)
}

function within(tag: string, node: SqlNode, around: Around): Around {
  if (choosing.has(tag) || conditions.has(tag) || (tag === 'A_Expr' && compares(node)))
    return around.collects ? { ...around, isShown: false } : compared
  const isArray = tag === 'SubLink' && node.subLinkType === 'ARRAY_SUBLINK'
  const by = around.by ?? (isArray ? 'an array' : nameTearing(tag, node))
  const cut = tag === 'TypeCast' || !/^[A-Z]/.test(tag) ? around.cut : null
  return { ...around, by, collects: around.collects || isArray, cut }
}

export const compares = ({ kind, name }: SqlNode): boolean =>
  comparingKinds.test(String(kind)) || (kind === 'AEXPR_OP' && comparing.has(strings(name).at(-1) ?? ''))

function keeps(name: string, { args }: SqlNode): boolean {
  const [, second] = (args as SqlNode[] | undefined) ?? []
  if (name.startsWith('substr')) return second !== undefined && (numberOf(second) ?? 2) <= 1
  if (name.endsWith('trim')) return second === undefined
  return keeping.has(name) || keepingJson.test(name) || ofOthers.test(name)
}

/**
 * Returns the number of characters that a call keeps: 100 for `left(x, 100)` and `substr(x, 1,
 * 100)`; null for any other call.
 */
function cutOf(name: string, { args }: SqlNode): number | null {
  const [, second, third] = ((args as SqlNode[] | undefined) ?? []).map(numberOf)
  const cut = name === 'left' ? second : name.startsWith('substr') && second === 1 ? third : null
  return cut != null && Number.isInteger(cut) && cut > 0 ? cut : null
}

/** Returns the name of what splits a value; null if the node returns its contents unchanged. */
function nameTearing(tag: string, node: SqlNode): string | null {
  if (tag === 'A_Expr') {
    const sign = strings(node.name).at(-1) ?? ''
    return node.kind === 'AEXPR_NULLIF' || fieldOperators.has(sign) ? null : `the operator ${sign}`
  }
  if (tag === 'valuesLists') return 'VALUES'
  if (tag === 'TypeCast') {
    const { names, arrayBounds } = (node.typeName ?? {}) as SqlNode
    return keepingTypes.has(strings(names).at(-1) ?? '') && arrayBounds === undefined ? null : 'another type'
  }
  if (!/^[A-Z]/.test(tag) || handing.has(tag)) return null
  return tag === 'A_ArrayExpr' ? 'an array' : tag === 'RowExpr' ? 'a row as one value' : tag
}
