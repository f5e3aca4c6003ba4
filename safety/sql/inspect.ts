import { inspectMysql } from './mysql.ts'
import { inspectPostgres, loadPostgresParser } from './postgres.ts'
import { inspectSqlite } from './sqlite.ts'

export type SqlDialect = 'postgres' | 'mysql' | 'sqlite'

/** The verdict on an SQL text, with the token, node or function that decided it. */
export type SqlFinding = { readOnly: boolean; reason: string }

/**
 * The inspector of each dialect, which takes a text of at most `longest` characters and returns a
 * finding.
 */
const inspectors: Record<SqlDialect, (text: string) => SqlFinding> = {
  postgres: inspectPostgres,
  mysql: inspectMysql,
  sqlite: inspectSqlite,
}

/** Most characters of a statement, because the parser's stack depth is unbounded. */
const longest = 20_000
/** Deepest nesting of brackets. */
const deepest = 100

/**
 * Decides whether a text can only read. Total and closed: a statement, node, function, operator or
 * character that is not listed is not a read, nor is a text on which a parser fails. No catalogue
 * is known here, so a view or an overloaded function may still write: therefore the text runs in a
 * read-only transaction, as a role that cannot write.
 */
export function inspectSql(dialect: SqlDialect, text: string): SqlFinding {
  if (typeof text !== 'string') return { readOnly: false, reason: 'no text' }
  if (!Object.hasOwn(inspectors, dialect)) return { readOnly: false, reason: `no inspector for ${String(dialect)}` }
  if (text.length > longest) return { readOnly: false, reason: `longer than ${longest} characters` }
  // Limits the nesting, because otherwise the depth of the stack would decide, which varies.
  if (nestingOf(text) > deepest) return { readOnly: false, reason: 'nested too deep' }
  // Refuses odd characters: PostgreSQL's parser stops at U+0000 and ignores the rest, and servers
  // disagree about line endings.
  const odd = /[^\t\n\x20-\x7e\u00a0-\u{10ffff}]|\p{Cf}|\p{Cs}/u.exec(text)
  if (odd) return { readOnly: false, reason: `character U+${odd[0].codePointAt(0)?.toString(16).padStart(4, '0')}` }
  try {
    return inspectors[dialect](text)
  } catch (error) {
    // Refuses a text that is too deep for the stack or on which a parser fails, because neither
    // proves a read.
    return {
      readOnly: false,
      reason: `not parsed: ${error instanceof Error ? error.message.slice(0, 200) : 'unknown'}`,
    }
  }
}

/** Returns the depth of brackets. Brackets in strings count too, which is safe. */
function nestingOf(text: string): number {
  let depth = 0
  let max = 0
  for (const character of text) {
    if (character === '(' || character === '[') max = Math.max(max, ++depth)
    else if (character === ')' || character === ']') depth -= 1
  }
  return max
}

/**
 * Loads PostgreSQL's parser once. Before the parser is loaded, no text of this dialect counts as a
 * read.
 */
export async function loadSql(): Promise<void> {
  await loadPostgresParser()
}
