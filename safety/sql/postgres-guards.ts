import { parsePostgres } from './postgres.ts'
import { type SqlNode, strings } from './postgres-nodes.ts'
import { listTorn, type Torn } from './postgres-torn.ts'
import { nodeTree, secretPairs, statementForms } from './stored-texts.ts'

/**
 * Guards in the server, where a statement takes values apart or keeps them to the end: the server
 * looks at each value itself, not at where it came from. A value that must not be shown in parts
 * ends the statement, and so does endless growth.
 */

/** One value that something else is made of. */
const maxValueBytes = 100_000
/** All values that one statement keeps. */
const maxKeptBytes = 32_000_000
/** What the server needs besides for each. */
const perValueBytes = 64

/** SQLSTATE by which a guarded statement ends: a value that is hidden, and too much. */
export const hiddenState = '2201G'
export const tooMuchState = '22011'

/**
 * `plain`: columns of numbers, times and their kin. `statements`: names of columns with others'
 * statements; null: none.
 */
type Guarded = { plain: ReadonlySet<string>; statements: ReadonlySet<string> | null }

type Edit = { from: number; to: number; text: string }

/** The statement with its guards, or the reason why it cannot have them. */
export function guardValues(sql: string, columns: Guarded): { sql: string } | { refusal: string } {
  const parsed = parsePostgres(sql)
  const text = Buffer.from(sql)
  const finding: Finding = { text, edits: new Map(), aliases: new Set(unnamed), unread: null }
  findRepeated(parsed, finding)
  const { edits, aliases, unread } = finding
  if (unread !== null) return { refusal: `write the name ${unread} plainly: it is repeated` }
  const plain = new Set([...columns.plain].filter((each) => !aliases.has(each)))
  for (const torn of listTorn(parsed)) {
    const names = strings(torn.node.fields)
    const isWhole = names.length === (torn.node.fields as unknown[] | undefined)?.length
    if (!isWhole)
      return {
        refusal: `${torn.by} ${torn.node.funcname ? 'around a text of others' : 'over a star'} may show what is hidden: name a column, or show it as it is`,
      }
    const edit = guard(torn, { text, columns: { ...columns, plain } })
    if (edit === undefined) return { refusal: `write the column ${names.join('.')} plainly: ${torn.by} takes it` }
    if (edit !== null) edits.set(edit.from, edit)
  }
  let guarded = text
  for (const { from, to, text: instead } of [...edits.values()].sort((a, b) => b.from - a.from))
    guarded = Buffer.concat([guarded.subarray(0, from), Buffer.from(instead), guarded.subarray(to)])
  return { sql: guarded.toString() }
}

const name = /(?:"(?:[^"]|"")+"|[A-Za-z_\u{80}-\u{10ffff}][\w$\u{80}-\u{10ffff}]*)/u
const reference = new RegExp(`^${name.source}(?:\\s*\\.\\s*${name.source})*`, 'u')

/** The names at a place of the text. Null: something else than these stands there. */
function readAt(text: Buffer, at: number, names: readonly string[]): string | null {
  const [found = ''] = reference.exec(text.subarray(at).toString()) ?? []
  const parts = (found.match(new RegExp(name.source, 'gu')) ?? []).map((each) =>
    each.startsWith('"') ? each.slice(1, -1).replaceAll('""', '"') : each.toLowerCase(),
  )
  return JSON.stringify(parts.slice(0, names.length)) === JSON.stringify(names) && parts.length === names.length
    ? found
    : null
}

/** Null: it needs none. Undefined: its place cannot be told. */
function guard(
  { node, collects, isShown, cut }: Torn,
  { text, columns }: { text: Buffer; columns: Guarded },
): Edit | null | undefined {
  const names = strings(node.fields)
  const last = names.at(-1)!
  const isPlain = !isShown || columns.plain.has(last)
  if (isPlain && !collects) return null
  const at = Number(node.location ?? 0)
  const column = readAt(text, at, names)
  if (column === null) return undefined
  const to = at + Buffer.byteLength(column)
  const whole = `(${column})::text`
  const taken = cut === null || cut > maxValueBytes ? whole : `pg_catalog.left(${whole}, ${cut})`
  const isStatement = isShown && (columns.statements?.has(last) ?? false)
  const shown = isStatement ? mask(taken) : column
  const size = `coalesce(pg_catalog.octet_length(${taken}), 0)`
  const bounds = [
    taken === whole && !isPlain && `coalesce(pg_catalog.pg_column_size(${column}), 0) < ${maxValueBytes}`,
    !isPlain && `${size} < ${maxValueBytes}`,
    collects && count(size),
  ].filter((each) => typeof each === 'string')
  const hides = !isPlain && !isStatement
  const hidden = `when ${taken} ~* ${hiddenForms} then case when pg_catalog.width_bucket(pg_catalog.length(${taken})::numeric, 1, 2, ${none}) = 0 then ${shown} end`
  return {
    from: at,
    to,
    text: `(case when (${bounds.join(' and ')}) is not true then case when ${endTooMuch(taken)} is null then ${shown} end ${hides ? hidden : ''} else ${shown} end)`,
  }
}

/**
 * Zero that the planner does not compute before: it evaluates constants, also behind a condition
 * that never holds.
 */
const none = "coalesce(pg_catalog.length(pg_catalog.current_setting('nightshift.none', true)), 0)"

const endTooMuch = (taken: string): string => `pg_catalog.substring(coalesce(${taken}, ''), 1, -1 - ${none})`

/** A count that the transaction keeps, since memory is what a row leaves behind. */
const count = (size: string): string => {
  const kept = `coalesce(nullif(pg_catalog.current_setting('nightshift.kept', true), ''), '0')::bigint`
  return `pg_catalog.set_config('nightshift.kept', (${kept} + ${perValueBytes} + ${size})::text, true)::bigint < ${maxKeptBytes}`
}

/** A regular expression of PostgreSQL, in a text of it. */
const quoteForm = (form: string): string => `$nightshift$${form.replaceAll('\\b', '\\y')}$nightshift$`

/** Bytes are not read here, so they are never taken apart. */
const hiddenForms = quoteForm([statementForms, secretPairs, nodeTree, /^\\x/].map(({ source }) => source).join('|'))

/**
 * A statement without its values: kept text, then a value, for each value. Where nobody can tell a
 * value's end, all after it goes. The server's expressions take the longest fit: no two of these
 * may begin at one place and end at two.
 */
const keptParts = `(?:"[^"]*"|[[:alpha:]_][\\w$]*(?![\\w$'])|\\m[[:alpha:]](?=')|[^\\w"'$/-]|-(?!-)|/(?!\\*))*`
const values = [
  `'(?:[^'\\\\]|'')*'(?!['\\w])`,
  // A word beside a quote: somewhere before one was left out.
  `'(?:[^'\\\\]|'')*'\\w.*`,
  `\\m[[:alpha:]_][\\w$]+'.*`,
  `'(?:[^'\\\\]|'')*\\\\.*`,
  `'(?:[^']|'')*$`,
  `"[^"]*$`,
  `\\$\\d+`,
  `\\$(?!\\d).*`,
  `\\m\\d[\\w.]*`,
  `--[^\\n\\r]*`,
  `/\\*[^*/]*\\*/`,
  `/\\*[^*/]*(?:\\*(?!/)|/|$).*`,
].join('|')
const maskForm = quoteForm(`(${keptParts})(?:${values})`)
/** Values that stand there without quotes, or in those of a name. */
const bareForm = quoteForm(
  `(\\yset\\s+(?:session\\s+|local\\s+)?[\\w.]+\\s*(?:=|\\yto\\y)\\s*|\\ypassword\\s+(?="))(?:"[^"]*"?|[^\\s;,)]+)`,
)
const replaceAll = (text: string, form: string, flags: string): string =>
  `pg_catalog.regexp_replace(${text}, ${form}, $nightshift$\\1?$nightshift$, '${flags}')`
const mask = (text: string): string => replaceAll(replaceAll(text, maskForm, 'g'), bareForm, 'gi')

/** Names that the grammar gives to columns. */
const unnamed = 'array case coalesce greatest least nullif row exists'.split(' ')

type Finding = { text: Buffer; edits: Map<number, Edit>; aliases: Set<string>; unread: string | null }

/** Counts each recursion's rows as they are made, and lists the statement's names. */
function findRepeated(value: unknown, finding: Finding, repeated: string | null = null, isRecursive = false): void {
  if (value === null || typeof value !== 'object') return
  for (const [tag, inner] of Object.entries(value as SqlNode)) {
    if (inner === null || typeof inner !== 'object') continue
    const node = inner as SqlNode
    const own = [
      node.aliasname,
      tag === 'ResTarget' ? node.name : undefined,
      ...strings(node.colnames ?? node.aliascolnames),
      // A column without a name is called after what makes it.
      strings(node.funcname ?? node.names).at(-1),
    ]
    for (const each of own) if (typeof each === 'string') finding.aliases.add(each)
    if (tag === 'RangeVar' && repeated !== null && node.relname === repeated && node.schemaname === undefined) {
      const at = Number(node.location ?? 0)
      const found = readAt(finding.text, at, [repeated])
      const row = `(${found}.*)::text`
      const isFew = count(`coalesce(pg_catalog.octet_length(${row}), 0)`)
      if (found === null) finding.unread = repeated
      else
        finding.edits.set(at, {
          from: at,
          to: at + Buffer.byteLength(found),
          text: `(select * from ${found} where case when ${isFew} then true else ${endTooMuch(row)} is null end)${node.alias ? '' : ` as ${found}`}`,
        })
    }
    const repeats = isRecursive && tag === 'CommonTableExpr'
    findRepeated(inner, finding, repeats ? String(node.ctename) : repeated, isRecursive || node.recursive === true)
  }
}
