import { BoundRefusal, type SqlNode, strings } from './postgres-nodes.ts'

/**
 * Columns of PostgreSQL's own tables that have other users' values, passwords or code, next to
 * columns that an investigation needs. A role sees what it may read, but in these columns a value
 * has no name by which redaction would recognise it.
 */

const words = (text: string) => new Set(text.trim().split(/\s+/))

/** Settings that may hold a password, or the command that prints one. */
const secretSettings = words(
  'primary_conninfo ssl_passphrase_command archive_command restore_command archive_cleanup_command recovery_end_command',
)
/** Matches known settings of extensions; others, such as `app.…`, may hold anything. */
const knownFamilies =
  /^(?:pg_stat_statements|auto_explain|pgaudit|pg_prewarm|pg_wait_sampling|timescaledb|cron|plpgsql)\./

export const isSecretSetting = (name: string): boolean =>
  name.toLowerCase() === 'all' ||
  secretSettings.has(name.toLowerCase()) ||
  (name.includes('.') && !knownFamilies.test(name.toLowerCase()))

/** Hidden columns by relation, with the reason. */
const hiddenColumns: Readonly<Record<string, { columns: ReadonlySet<string>; because: string }>> = {
  pg_settings: {
    columns: words('setting boot_val reset_val'),
    because: 'a setting may hold a password: name the settings',
  },
  pg_db_role_setting: { columns: words('setconfig'), because: 'the column holds settings, whatever their names' },
  pg_roles: { columns: words('rolconfig rolpassword'), because: 'the column holds settings, whatever their names' },
  pg_user: { columns: words('useconfig passwd'), because: 'the column holds settings, whatever their names' },
  pg_foreign_table: { columns: words('ftoptions'), because: 'options hold passwords of other servers' },
  pg_foreign_server: { columns: words('srvoptions'), because: 'options hold passwords of other servers' },
  pg_attribute: { columns: words('attfdwoptions attmissingval'), because: 'the column holds options, or a value' },
  pg_subscription: { columns: words('subconninfo'), because: 'the column holds a connection with its password' },
  pg_stat_wal_receiver: { columns: words('conninfo'), because: 'the column holds a connection' },
  pg_proc: { columns: words('prosrc prosqlbody proconfig'), because: 'code holds what its author wrote into it' },
  pg_trigger: { columns: words('tgargs'), because: 'arguments of a trigger are values: ask pg_get_triggerdef(oid)' },
  routines: { columns: words('routine_definition'), because: 'code holds what its author wrote into it' },
  job: { columns: words('command'), because: 'a command of a schedule may hold a password' },
  job_run_details: { columns: words('command return_message'), because: 'a command of a schedule may hold a password' },
  pg_stats: {
    columns: words('most_common_vals histogram_bounds most_common_elems range_length_histogram range_bounds_histogram'),
    because: 'the entries are values of a column',
  },
  pg_stats_ext: { columns: words('most_common_vals'), because: 'the entries are values of columns' },
  pg_stats_ext_exprs: {
    columns: words('most_common_vals histogram_bounds most_common_elems'),
    because: 'the entries are values of a column',
  },
  pg_statistic: {
    columns: words('stavalues1 stavalues2 stavalues3 stavalues4 stavalues5'),
    because: 'the entries are values of a column',
  },
  pg_statistic_ext_data: { columns: words('stxdmcv stxdexpr'), because: 'the entries are values of columns' },
}

/**
 * The relations of a FROM by their names there, and the names of joins, each of which includes all
 * columns of its relations.
 */
type Scope = { relations: { name: string; as: string; isRenamed: boolean }[]; others: string[]; joins: string[] }

/**
 * Throws if a SELECT names a hidden column of a table in its FROM, or all columns of such a table.
 */
export function checkColumns(select: SqlNode): void {
  const scope: Scope = { relations: [], others: [], joins: [] }
  for (const item of (select.fromClause as SqlNode[] | undefined) ?? []) readFrom(item, scope)
  for (const { name, as, isRenamed } of scope.relations) {
    const hidden = Object.hasOwn(hiddenColumns, name) ? hiddenColumns[name]! : null
    if (hidden === null) continue
    const others = new Set([...scope.others, ...scope.relations.map(({ as }) => as)])
    others.delete(as)
    const found = isRenamed ? '*' : findColumn(select, { as, others, joins: scope.joins, columns: hidden.columns })
    if (found === null || (name === 'pg_settings' && !isRenamed && isNamed(select.whereClause))) continue
    throw new BoundRefusal(`column ${found} of ${name}: ${hidden.because}`)
  }
}

function readFrom(item: SqlNode, scope: Scope): void {
  const [tag = '', node] = Object.entries(item)[0] ?? []
  const inner = node as SqlNode
  const alias = inner?.alias as { aliasname?: string; colnames?: unknown } | undefined
  if (tag === 'RangeVar') {
    const name = String(inner.relname)
    scope.relations.push({ name, as: alias?.aliasname ?? name, isRenamed: alias?.colnames !== undefined })
  } else if (tag === 'JoinExpr') {
    if (alias?.aliasname) scope.joins.push(alias.aliasname)
    readFrom(inner.larg as SqlNode, scope)
    readFrom(inner.rarg as SqlNode, scope)
  } else if (alias?.aliasname) scope.others.push(alias.aliasname)
}

type Wanted = { as: string; others: ReadonlySet<string>; joins: readonly string[]; columns: ReadonlySet<string> }

function findColumn(value: unknown, wanted: Wanted): string | null {
  if (value === null || typeof value !== 'object') return null
  if (Array.isArray(value)) {
    for (const entry of value) {
      const found = findColumn(entry, wanted)
      if (found !== null) return found
    }
    return null
  }
  for (const [tag, node] of Object.entries(value as SqlNode)) {
    const found =
      tag === 'ColumnRef'
        ? ofReference(node as SqlNode, wanted)
        : (ofJoin(tag, node, wanted) ?? findColumn(node, wanted))
    if (found !== null) return found
  }
  return null
}

function ofReference({ fields }: SqlNode, { as, others, joins, columns }: Wanted): string | null {
  const names = strings(fields)
  const isStar = names.length < (fields as unknown[]).length
  const qualifier = isStar ? names.at(-1) : names.at(-2)
  if (qualifier !== undefined && others.has(qualifier)) return null
  if (isStar) return '*'
  const name = names.at(-1)!
  // Treats a table's own name as its whole row.
  if (names.length === 1 && (name === as || joins.includes(name))) return '*'
  return columns.has(name) ? name : null
}

/** Returns the columns that a join compares without naming them, or by their name alone. */
function ofJoin(tag: string, node: unknown, { columns }: Wanted): string | null {
  if (tag === 'isNatural') return '*'
  return tag === 'usingClause' ? (strings(node).find((name) => columns.has(name)) ?? null) : null
}

/** Matches types of settings that hold no text. */
const plainTypes = /^(?:bool|integer|real|enum)$/

/** Whether a condition limits settings to names without a secret. */
function isNamed(condition: unknown): boolean {
  const node = (condition ?? {}) as SqlNode
  const logic = node.BoolExpr as { boolop?: string; args?: unknown[] } | undefined
  if (logic?.boolop === 'AND_EXPR') return (logic.args ?? []).some(isNamed)
  if (logic?.boolop === 'OR_EXPR') return (logic.args ?? []).every(isNamed)
  const compared = node.A_Expr as SqlNode | undefined
  const column = strings(((compared?.lexpr as SqlNode)?.ColumnRef as SqlNode)?.fields).at(-1) ?? ''
  if (!compared || (column !== 'name' && column !== 'vartype')) return false
  const right = compared.rexpr as SqlNode
  const list = (right?.List as { items?: SqlNode[] } | undefined)?.items ?? [right]
  const texts = list.map(textOf)
  const operator = strings(compared.name).join('')
  if (column === 'vartype') return operator === '=' && texts.every((text) => text !== null && plainTypes.test(text))
  if (operator === '~' && texts.length === 1 && texts[0] !== null) return isNarrowExpression(texts[0]!)
  if (operator === '=') return texts.every((text) => text !== null && !isSecretSetting(text))
  return operator === '~~' && texts.length === 1 && texts[0] !== null && isNarrowPattern(texts[0]!)
}

function textOf(node: SqlNode | undefined): string | null {
  const inner = (node?.TypeCast as { arg?: SqlNode } | undefined)?.arg ?? node
  return (inner?.A_Const as { sval?: { sval?: string } } | undefined)?.sval?.sval ?? null
}

/** Whether a regular expression (`^(enable_|jit)`) has only words and selective alternatives. */
function isNarrowExpression(expression: string): boolean {
  if (!/^\^?\(?[a-z_0-9|]+\)?\$?$/.test(expression)) return false
  return expression
    .replace(/[^a-z_0-9|]/g, '')
    .split('|')
    .every((word) => isNarrowPattern(`%${word}%`))
}

/**
 * Whether a pattern such as `%wal%` has at least three letters and matches no secret setting. A
 * setting of an extension would have a name with a dot.
 */
function isNarrowPattern(pattern: string): boolean {
  if (!/[a-z_]{3}/.test(pattern) || pattern.includes('.') || /secret|pass|token|key|cred|auth|jwt/.test(pattern))
    return false
  const expression = new RegExp(
    `^${pattern
      .replace(/[^\w%]/g, '\\$&')
      .replaceAll('_', '.')
      .replaceAll('%', '.*')}$`,
  )
  return ![...secretSettings].some((name) => expression.test(name))
}
