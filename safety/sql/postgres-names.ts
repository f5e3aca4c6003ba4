import { parsePostgres } from './postgres.ts'
import { type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Names in a PostgreSQL read, which are then looked up in the server's catalogue. The grammar alone
 * cannot tell a site's function from a built-in one with the same name, a view from a table, or
 * which columns a star has.
 */
export type SqlNames = {
  /** The statement itself, without a comment after its end. */
  text: string
  statement: 'SelectStmt' | 'ExplainStmt' | 'VariableShowStmt'
  /**
   * Relations in the form in which the server looks them up: quoted, and with their schema if it is
   * given.
   */
  relations: string[]
  /** Functions as they are called; those of the built-in schema as `pg_catalog.name`. */
  functions: string[]
  /** Names after a dot, each of which is a column or a function of a row. */
  fields: string[]
  /** Operators, in the same form as functions. */
  operators: string[]
  /** Types of casts. */
  types: string[]
  /** Columns that are named anywhere except in `IS NULL`. */
  columns: string[]
  /**
   * Whether names of columns may be lost: by a row used as one value, by an alias that renames
   * columns, or by a star if there is more than one SELECT.
   */
  takesRows: boolean
  /** Whether a whole row is used as one value. */
  takesWholeRows: boolean
  /** Texts by which a field of a JSON value is read. */
  jsonFields: string[]
  /**
   * Whether a computed name reads a field (`operators`, `subscripts`), and what reads all fields at
   * once.
   */
  jsonSearches: { operators: boolean; subscripts: boolean; all: string | null }
}

const jsonOperators = new Set(['->', '->>', '#>', '#>>'])
const jsonFunction = /^jsonb?_(?:extract_path|path|object)/
/** Matches JSON functions that take names of fields as their second and later arguments. */
const namingFunction = /^jsonb?_(?:extract_path|path)/
/** Matches paths to fields of any name. */
const anyField = /\.\s*\*|keyvalue/

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Returns the names in a text; null if it is not exactly one statement that reads. */
export function namesOf(text: string): SqlNames | null {
  const [first, ...others] = parsePostgres(text)
  const [statement] = Object.keys(first?.stmt ?? {})
  const isRead = statement === 'SelectStmt' || statement === 'ExplainStmt' || statement === 'VariableShowStmt'
  if (others.length > 0 || !isRead) return null
  const found = { ...collect(first?.stmt), aliases: new Set<string>() }
  for (const relation of found.items) found.aliases.add(relation)
  const takesWholeRows = found.starsElsewhere || [...found.bare].some((name) => found.aliases.has(name))
  const { stmt_location: from = 0, stmt_len: length } = first as { stmt_location?: number; stmt_len?: number }
  return {
    text: length
      ? Buffer.from(text)
          .subarray(from, from + length)
          .toString()
      : text,
    statement,
    relations: [...found.relations],
    functions: [...found.functions],
    fields: [...found.fields],
    operators: [...found.operators],
    types: [...found.types],
    columns: [...found.columns],
    jsonFields: [...found.jsonFields],
    jsonSearches: found.jsonSearches,
    takesRows: takesWholeRows || found.renames || (found.stars && found.selects > 1),
    takesWholeRows,
  }
}

type Found = ReturnType<typeof nothing>

const nothing = () => ({
  relations: new Set<string>(),
  functions: new Set<string>(),
  fields: new Set<string>(),
  operators: new Set<string>(),
  types: new Set<string>(),
  columns: new Set<string>(),
  jsonFields: new Set<string>(),
  jsonSearches: { operators: false, subscripts: false, all: null as string | null },
  /**
   * `items`: names in a FROM. `bare`: columns without a qualifier. A name in both may be a whole
   * row.
   */
  items: new Set<string>(),
  bare: new Set<string>(),
  /** Names of result columns. */
  answers: new Set<string>(),
  selects: 0,
  stars: false,
  starsElsewhere: false,
  renames: false,
})

function collect(statement: unknown): Found {
  const found = nothing()
  visit(statement, found, '')
  return found
}

function visit(value: unknown, found: Found, above: string): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const entry of value) visit(entry, found, above)
    return
  }
  for (const [tag, node] of Object.entries(value as SqlNode)) {
    if (node === null || typeof node !== 'object') {
      if (tag === 'isNatural' && node === true) found.renames = true
      continue
    }
    if (!Array.isArray(node)) readers[tag]?.(node as SqlNode, found, above)
    // Skips a column that is only tested for NULL, which shows nothing of its value.
    if (tag === 'NullTest' && Object.keys((node as SqlNode).arg ?? {})[0] === 'ColumnRef') {
      const { fields } = ((node as { arg: SqlNode }).arg.ColumnRef ?? {}) as SqlNode
      if (strings(fields).length > 1) found.fields.add(strings(fields).at(-1)!)
      continue
    }
    visit(node, found, /^[A-Z]/.test(tag) ? tag : above)
  }
}

const readers: Readonly<Record<string, (node: SqlNode, found: Found, above: string) => void>> = {
  SelectStmt: countSelect,
  larg: (node, found) => node.targetList !== undefined && countSelect(node, found),
  rarg: (node, found) => node.targetList !== undefined && countSelect(node, found),
  RangeVar({ schemaname, relname }, found) {
    found.relations.add(
      [schemaname, relname]
        .filter((each) => each !== undefined)
        .map((each) => quote(String(each)))
        .join('.'),
    )
    found.items.add(String(relname))
  },
  typeName: ({ names }, found) => void found.types.add(strings(names).at(-1) ?? ''),
  alias: readAlias,
  Alias: readAlias,
  CommonTableExpr({ ctename, aliascolnames }, found) {
    found.items.add(String(ctename))
    if (aliascolnames !== undefined) found.renames = true
  },
  ResTarget: ({ name }, found) => {
    if (name !== undefined) found.answers.add(String(name))
  },
  FuncCall({ funcname, args }, found) {
    const names = strings(funcname)
    found.functions.add(names.join('.'))
    const called = names.at(-1) ?? ''
    if (jsonFunction.test(called)) addTexts(args, found)
    if (/^jsonb?_each/.test(called)) found.jsonSearches.all = called
    if (!namingFunction.test(called)) return
    const [, ...named] = (args as SqlNode[] | undefined) ?? []
    if (!named.every(isPlain)) found.jsonSearches.operators = true
    if (called.startsWith('jsonb_path') && anyField.test(JSON.stringify(named)))
      found.jsonSearches.all = 'a path over all fields'
  },
  A_Expr({ kind, name, rexpr }, found) {
    const names = strings(name)
    for (const each of comparedBy(String(kind)) ?? [names.join('.')]) found.operators.add(each)
    if (!jsonOperators.has(names.at(-1) ?? '')) return
    addTexts(rexpr, found)
    if (!isPlain(rexpr)) found.jsonSearches.operators = true
  },
  SubLink: ({ operName, subLinkType }, found) => {
    if (operName !== undefined || subLinkType === 'ANY_SUBLINK') found.operators.add(strings(operName).join('.') || '=')
  },
  CaseExpr: ({ arg }, found) => {
    if (arg !== undefined) found.operators.add('=')
  },
  JoinExpr: ({ isNatural, usingClause }, found) => {
    if (isNatural === true || usingClause !== undefined) found.operators.add('=')
  },
  ColumnRef({ fields }, found, above) {
    const names = strings(fields)
    if (names.length < (fields as unknown[]).length) {
      found.stars = true
      if (above !== 'ResTarget') found.starsElsewhere = true
      return
    }
    const last = names.at(-1)!
    found.columns.add(last)
    if (names.length > 1) found.fields.add(last)
    // Skips a name in ORDER BY that is a result column, because ORDER BY takes it as that column.
    else if (above !== 'SortBy' || !found.answers.has(last)) found.bare.add(last)
  },
  A_Indices({ uidx }, found) {
    addTexts(uidx, found)
    if (!isPlain(uidx)) found.jsonSearches.subscripts = true
  },
  A_Indirection({ indirection }, found) {
    for (const name of strings(indirection)) {
      found.fields.add(name)
      found.columns.add(name)
    }
    if (JSON.stringify(indirection).includes('A_Star')) found.starsElsewhere = true
  },
}

/** Returns the operators that BETWEEN and NULLIF use; null for another kind of node. */
const comparedBy = (kind: string): string[] | null =>
  kind.includes('BETWEEN') ? ['<', '<=', '>', '>='] : kind === 'AEXPR_NULLIF' ? ['='] : null

function countSelect(_: SqlNode, found: Found): void {
  found.selects += 1
}

function readAlias({ aliasname, colnames }: SqlNode, found: Found, above: string): void {
  found.items.add(String(aliasname))
  // Ignores an alias's columns for a function in FROM, because they replace no other names.
  if (colnames !== undefined && above !== 'RangeFunction') found.renames = true
}

/** Whether a node is a constant, or a list of constants. */
function isPlain(node: unknown): boolean {
  const [tag = '', inner] = Object.entries((node ?? {}) as SqlNode)[0] ?? []
  if (tag === 'TypeCast') return isPlain((inner as SqlNode).arg)
  if (tag === 'A_ArrayExpr') return (((inner as SqlNode).elements ?? []) as unknown[]).every(isPlain)
  return tag === 'A_Const' || (tag === 'A_Expr' && (inner as SqlNode).lexpr === undefined)
}

/** Collects every text in a node. */
function addTexts(node: unknown, found: Found): void {
  for (const [, text] of JSON.stringify(node ?? null).matchAll(/"sval":"((?:[^"\\]|\\.)*)"/g))
    found.jsonFields.add(text!)
}
