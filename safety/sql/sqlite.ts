import { Cursor, readStatements, type Scanner, SqlProblem, tokenise } from './cursor.ts'
import type { SqlFinding } from './inspect.ts'
import { query } from './query.ts'

const words = (text: string) => new Set(text.trim().split(/\s+/))

/**
 * Words of sqlite.org/lang_keywords.html that begin or end a part of a statement, so that they are
 * not names unless quoted.
 */
const reserved = words(`
  ABORT ADD ALL ALTER ALWAYS ANALYZE AND AS ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE CASE CAST CHECK
  COLLATE COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DEFERRABLE DELETE
  DESC ASC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FOR FOREIGN FROM
  FULL GLOB GROUP HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL
  JOIN LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OUTER OVER
  PARTITION PLAN PRAGMA PRIMARY RAISE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING
  RIGHT ROLLBACK SAVEPOINT SELECT SET TABLE THEN TO TRANSACTION TRIGGER UNION UNIQUE UPDATE USING VACUUM VALUES VIEW
  VIRTUAL WHEN WHERE WINDOW WITH WITHOUT LATERAL USE FORCE DUAL
`)

/**
 * Core, date, aggregate, window, JSON and mathematical functions of sqlite.org that open no file
 * and change nothing.
 */
const functions = words(`
  abs changes char coalesce concat concat_ws format glob hex ifnull iif if instr last_insert_rowid length like
  likelihood likely lower ltrim max min nullif octet_length printf quote random replace round rtrim sign soundex
  sqlite_compileoption_get sqlite_compileoption_used sqlite_source_id sqlite_version substr substring total_changes
  trim typeof unhex unicode unlikely upper cast
  avg count group_concat string_agg sum total median percentile percentile_cont percentile_disc
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
  date time datetime julianday unixepoch strftime timediff
  json jsonb json_array json_array_length json_error_position json_extract json_object json_pretty json_quote
  json_type json_valid json_group_array json_group_object
  ceil ceiling floor trunc ln log log10 log2 exp pow power sqrt mod pi
`)

/** Functions in FROM: JSON, series, and the pragmas that only describe. */
const tableFunctions = words(`
  json_each json_tree generate_series pragma_table_info pragma_table_xinfo pragma_table_list pragma_index_list
  pragma_index_info pragma_index_xinfo pragma_foreign_key_list pragma_foreign_key_check pragma_database_list
  pragma_compile_options pragma_function_list pragma_module_list pragma_pragma_list pragma_collation_list
  pragma_page_count pragma_page_size pragma_freelist_count pragma_integrity_check pragma_quick_check
  pragma_user_version pragma_schema_version pragma_journal_mode pragma_encoding
`)

/** Virtual tables that read files or raw pages. */
const secretTables = words('fsdir zipfile sqlite_dbpage dbpage csv completion')

const types = words(
  'INTEGER INT BIGINT SMALLINT TINYINT REAL DOUBLE PRECISION FLOAT NUMERIC DECIMAL TEXT CHAR VARCHAR BLOB BOOLEAN DATE DATETIME',
)

const operators = words('AND OR LIKE GLOB REGEXP MATCH BETWEEN ESCAPE')

const constants = words('NULL TRUE FALSE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP')

/** Pragmas that only read if they have no argument (sqlite.org/pragma.html). */
const plainPragmas = words(`
  application_id auto_vacuum automatic_index busy_timeout cache_size cache_spill cell_size_check
  checkpoint_fullfsync collation_list compile_options data_version database_list defer_foreign_keys encoding
  foreign_key_check foreign_keys freelist_count fullfsync function_list hard_heap_limit integrity_check journal_mode
  journal_size_limit legacy_alter_table locking_mode max_page_count mmap_size module_list page_count page_size
  pragma_list query_only quick_check read_uncommitted recursive_triggers schema_version secure_delete soft_heap_limit
  synchronous table_list temp_store threads trusted_schema user_version wal_autocheckpoint
`)

/** Pragmas whose argument names what they describe. */
const describingPragmas = words(`
  table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check
  integrity_check quick_check
`)

const scanner: Scanner = {
  signs: '->> -> << >> <> != == <= >= || ( ) , . ; * + - / % = < > | & ~'.split(' '),
  nameQuotes: { '"': '"', '`': '`', '[': ']' },
  stringQuotes: `'`,
  hashComments: false,
  dashNeedsBlank: false,
  serverVariables: false,
  backslashEnds: false,
}

const grammarWords = {
  reserved,
  functions,
  tableFunctions,
  checkTable,
  types,
  operators,
  constants,
  intervalUnits: new Set<string>(),
  inTable: true,
}

function checkTable(parts: string[]): void {
  const name = parts.at(-1)!
  const pragma = name.startsWith('pragma_') && !tableFunctions.has(name)
  if (secretTables.has(name) || pragma) throw new SqlProblem(`table ${name}`)
}

/**
 * Matches commands of the sqlite3 shell that only read; an argument must be a plain name or
 * pattern.
 */
const safeDotCommand =
  /^\.(?:(?:tables?|schema|indexes|indices|fullschema|databases|dbinfo|show|version)(?: +[A-Za-z0-9_%]+)?|(?:headers?|timer|eqp|echo) +(?:on|off)|mode +(?:column|list|line|csv|json|table|box|markdown|tabs|quote)|timeout +[0-9]+|(?:quit|exit)) *$/

/**
 * Checks texts for SQLite: SELECT, EXPLAIN and describing pragmas by a closed grammar, after
 * harmless commands of its shell.
 */
export function inspectSqlite(text: string): SqlFinding {
  const lines = text.split('\n')
  let first = 0
  while (first < lines.length && (safeDotCommand.test(lines[first]!) || lines[first] === '')) first++
  const dots = lines.slice(0, first).filter((line) => line !== '')
  const rest = lines.slice(first)
  // Refuses a command of the shell in a later line, because the shell may see the end of a
  // statement, and then a command, where this grammar does not.
  const dot = rest.find((line) => /^[ \t]*[.#]/.test(line))
  if (dot !== undefined) return { readOnly: false, reason: `shell command ${dot.trim().slice(0, 40)}` }
  try {
    const c = new Cursor(tokenise(rest.join('\n'), scanner), grammarWords, query)
    const kinds = [...dots.map((line) => line.split(' ')[0]!), ...readStatements(c, statement)]
    if (kinds.length === 0) return { readOnly: false, reason: 'no statement' }
    return { readOnly: true, reason: kinds.join(', ') }
  } catch (error) {
    if (error instanceof SqlProblem) return { readOnly: false, reason: error.message }
    throw error
  }
}

function statement(c: Cursor): void {
  if (c.takeWord('PRAGMA')) pragma(c)
  else {
    if (c.takeWord('EXPLAIN')) c.takeWords('QUERY', 'PLAN')
    if (!c.isWord('SELECT', 'WITH', 'VALUES')) throw new SqlProblem(`statement ${c.peek().text.slice(0, 40)}`)
    query(c)
  }
}

/**
 * Reads a pragma. `PRAGMA name = value` changes a setting. So does `PRAGMA name(value)`, unless the
 * value names what to describe.
 */
function pragma(c: Cursor): void {
  let name = c.name()
  if (c.takeSign('.')) name = c.name()
  name = name.toLowerCase()
  if (c.takeSign('(')) {
    if (!describingPragmas.has(name)) throw new SqlProblem(`PRAGMA ${name}(`)
    if (!c.takeKind('string', 'number')) c.name()
    c.needSign(')')
  } else if (!plainPragmas.has(name)) throw new SqlProblem(`PRAGMA ${name}`)
  if (c.isSign('=')) throw new SqlProblem(`PRAGMA ${name} =`)
}
