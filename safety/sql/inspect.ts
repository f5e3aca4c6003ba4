import { inspectMysql } from './mysql.ts'
import { inspectPostgres, loadPostgresParser } from './postgres.ts'
import { inspectSqlite } from './sqlite.ts'

export type SqlDialect = 'postgres' | 'mysql' | 'sqlite'

/** The verdict on an SQL text, and the token, node or function that decided it. */
export type SqlFinding = { readOnly: boolean; reason: string }

/** One entry per dialect: text of at most `longest` characters in, a finding out. */
const inspectors: Record<SqlDialect, (text: string) => SqlFinding> = {
  postgres: inspectPostgres,
  mysql: inspectMysql,
  sqlite: inspectSqlite,
}

/** Longer statements are refused: the parser's stack depth is unbounded. */
const longest = 20_000
/** Nor is a text whose brackets stand deeper in each other. */
const deepest = 100

/**
 * Says whether a text can only read. Total and closed: an unlisted statement, node, function,
 * operator or character is no read, nor is what makes a parser fail. It knows no catalogue, so a
 * view or overloaded function may still write: the text runs in a read-only transaction and as a
 * role that cannot write.
 */
export function inspectSql(dialect: SqlDialect, text: string): SqlFinding {
  if (typeof text !== 'string') return { readOnly: false, reason: 'no text' }
  if (!Object.hasOwn(inspectors, dialect)) return { readOnly: false, reason: `no inspector for ${String(dialect)}` }
  if (text.length > longest) return { readOnly: false, reason: `longer than ${longest} characters` }
  // Otherwise the depth of the stack would decide, and that is another one on another day.
  if (nestingOf(text) > deepest) return { readOnly: false, reason: 'nested too deep' }
  // PostgreSQL's parser stops at U+0000 and reads nothing after it, and line endings differ between
  // servers.
  const odd = /[^\t\n\x20-\x7e\u00a0-\u{10ffff}]|\p{Cf}|\p{Cs}/u.exec(text)
  if (odd) return { readOnly: false, reason: `character U+${odd[0].codePointAt(0)?.toString(16).padStart(4, '0')}` }
  try {
    return inspectors[dialect](text)
  } catch (error) {
    // Depth beyond the stack, or a parser that gave up: neither proves a read.
    return {
      readOnly: false,
      reason: `not parsed: ${error instanceof Error ? error.message.slice(0, 200) : 'unknown'}`,
    }
  }
}

/** The depth of brackets; those in strings count too, which errs to the safe side. */
function nestingOf(text: string): number {
  let depth = 0
  let max = 0
  for (const character of text) {
    if (character === '(' || character === '[') max = Math.max(max, ++depth)
    else if (character === ')' || character === ']') depth -= 1
  }
  return max
}

/** Loads PostgreSQL's parser, once. Before that no text of that dialect is known to be a read. */
export async function loadSql(): Promise<void> {
  await loadPostgresParser()
}
