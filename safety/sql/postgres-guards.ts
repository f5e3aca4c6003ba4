import { parsePostgres } from './postgres.ts'
import { type SqlNode, strings } from './postgres-nodes.ts'
import { listTorn, type Torn } from './postgres-torn.ts'
import { nodeTree, secretPairs, statementForms } from './stored-texts.ts'

/**
 * Adds guards to a statement that splits values or collects them to the end. The server then checks
 * each value itself, not its origin. A value that must not be shown in parts ends the statement,
 * and so does endless growth.
 */

/** Most bytes of a value from which another value is made. */
const maxValueBytes = 100_000
/** Most bytes of all values that one statement collects. */
const maxKeptBytes = 32_000_000
/** Bytes that the server itself needs for each collected value. */
const perValueBytes = 64

/**
 * SQLSTATEs with which a guarded statement ends: `hiddenState` for a hidden value, `tooMuchState`
 * for too much data.
 */
export const hiddenState = '2201G'
export const tooMuchState = '22011'

/**
 * `plain`: columns of numbers, times and the like. `statements`: names of columns with other users'
 * statements; null if there are none.
 */
type Guarded = { plain: ReadonlySet<string>; statements: ReadonlySet<string> | null }

type Edit = { from: number; to: number; text: string }

/** Returns the statement with its guards, or why it cannot have them. */
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

/** Returns the dotted name at a position if its parts are these names; null otherwise. */
function readAt(text: Buffer, at: number, names: readonly string[]): string | null {
  const [found = ''] = reference.exec(text.subarray(at).toString()) ?? []
  const parts = (found.match(new RegExp(name.source, 'gu')) ?? []).map((each) =>
    each.startsWith('"') ? each.slice(1, -1).replaceAll('""', '"') : each.toLowerCase(),
  )
  return JSON.stringify(parts.slice(0, names.length)) === JSON.stringify(names) && parts.length === names.length
    ? found
    : null
}

/** Returns the guard of a value; null if it needs none, undefined if its place is unknown. */
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
 * SQL of a zero that the planner does not compute in advance. The planner evaluates constants, even
 * after a condition that is never true.
 */
const none = "coalesce(pg_catalog.length(pg_catalog.current_setting('nightshift.none', true)), 0)"

const endTooMuch = (taken: string): string => `pg_catalog.substring(coalesce(${taken}, ''), 1, -1 - ${none})`

/** SQL that counts bytes in the transaction, because rows are not freed when they are passed on. */
const count = (size: string): string => {
  const kept = `coalesce(nullif(pg_catalog.current_setting('nightshift.kept', true), ''), '0')::bigint`
  return `pg_catalog.set_config('nightshift.kept', (${kept} + ${perValueBytes} + ${size})::text, true)::bigint < ${maxKeptBytes}`
}

/** Quotes a regular expression as a text of PostgreSQL. */
const quoteForm = (form: string): string => `$nightshift$${form.replaceAll('\\b', '\\y')}$nightshift$`

/**
 * Includes `\\x`, the beginning of bytes. Bytes are not searched for secrets, so they may never be
 * split.
 */
const hiddenForms = quoteForm([statementForms, secretPairs, nodeTree, /^\\x/].map(({ source }) => source).join('|'))

/**
 * Matches a statement in pieces: text that is kept, then a value, repeatedly. If the end of a value
 * is uncertain, all text after it is removed. The server's expressions take the longest match, so
 * no two alternatives may begin at one place and end at two.
 */
const keptParts = `(?:"[^"]*"|[[:alpha:]_][\\w$]*(?![\\w$'])|\\m[[:alpha:]](?=')|[^\\w"'$/-]|-(?!-)|/(?!\\*))*`
const values = [
  `'(?:[^'\\\\]|'')*'(?!['\\w])`,
  // Matches a word next to a quote, because an earlier quote is missing.
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
/** Matches values without quotes, or in the quotes of a name. */
const bareForm = quoteForm(
  `(\\yset\\s+(?:session\\s+|local\\s+)?[\\w.]+\\s*(?:=|\\yto\\y)\\s*|\\ypassword\\s+(?="))(?:"[^"]*"?|[^\\s;,)]+)`,
)
const replaceAll = (text: string, form: string, flags: string): string =>
  `pg_catalog.regexp_replace(${text}, ${form}, $nightshift$\\1?$nightshift$, '${flags}')`
const mask = (text: string): string => replaceAll(replaceAll(text, maskForm, 'g'), bareForm, 'gi')

/** Names that PostgreSQL gives to columns without a name. */
const unnamed = 'array case coalesce greatest least nullif row exists'.split(' ')

type Finding = { text: Buffer; edits: Map<number, Edit>; aliases: Set<string>; unread: string | null }

/** Counts the rows of each recursion as they are made, and lists the names in the statement. */
function findRepeated(value: unknown, finding: Finding, repeated: string | null = null, isRecursive = false): void {
  if (value === null || typeof value !== 'object') return
  for (const [tag, inner] of Object.entries(value as SqlNode)) {
    if (inner === null || typeof inner !== 'object') continue
    const node = inner as SqlNode
    const own = [
      node.aliasname,
      tag === 'ResTarget' ? node.name : undefined,
      ...strings(node.colnames ?? node.aliascolnames),
      // Adds the name of an unnamed column, which is the name of the function or type that makes
      // it.
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
