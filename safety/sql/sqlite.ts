import { Cursor, readStatements } from './cursor.ts'
import type { SqlFinding } from './inspect.ts'
import { query } from './query.ts'
import {
  constants,
  describingPragmas,
  functions,
  operators,
  plainPragmas,
  reserved,
  secretTables,
  tableFunctions,
  types,
} from './sqlite-words.ts'
import { Problem, type Scanner, tokenise } from './tokens.ts'

const scanner: Scanner = {
  signs: '->> -> << >> <> != == <= >= || ( ) , . ; * + - / % = < > | & ~'.split(' '),
  nameQuotes: { '"': '"', '`': '`', '[': ']' },
  stringQuotes: `'`,
  hashComments: false,
  dashNeedsBlank: false,
  serverVariables: false,
  backslashEnds: false,
}

const words = {
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
  if (secretTables.has(name) || pragma) throw new Problem(`table ${name}`)
}

/** Commands of the shell that print what is there; an argument is a plain name or pattern. */
const safeDotCommand =
  /^\.(?:(?:tables?|schema|indexes|indices|fullschema|databases|dbinfo|show|version)(?: +[A-Za-z0-9_%]+)?|(?:headers?|timer|eqp|echo) +(?:on|off)|mode +(?:column|list|line|csv|json|table|box|markdown|tabs|quote)|timeout +[0-9]+|(?:quit|exit)) *$/

/** SQLite: SELECT, EXPLAIN and describing pragmas by a closed grammar, behind any harmless commands of its shell. */
export function inspectSqlite(text: string): SqlFinding {
  const lines = text.split('\n')
  let first = 0
  while (first < lines.length && (safeDotCommand.test(lines[first]!) || lines[first] === '')) first++
  const dots = lines.slice(0, first).filter((line) => line !== '')
  const rest = lines.slice(first)
  // The shell takes a line for its own where it believes that a statement ended; our belief need not be its.
  const dot = rest.find((line) => /^[ \t]*[.#]/.test(line))
  if (dot !== undefined) return { readOnly: false, reason: `shell command ${dot.trim().slice(0, 40)}` }
  try {
    const c = new Cursor(tokenise(rest.join('\n'), scanner), words, query)
    const kinds = [...dots.map((line) => line.split(' ')[0]!), ...readStatements(c, statement)]
    if (kinds.length === 0) return { readOnly: false, reason: 'no statement' }
    return { readOnly: true, reason: kinds.join(', ') }
  } catch (error) {
    if (error instanceof Problem) return { readOnly: false, reason: error.message }
    throw error
  }
}

function statement(c: Cursor): void {
  if (c.takeWord('PRAGMA')) pragma(c)
  else {
    if (c.takeWord('EXPLAIN')) c.takeWords('QUERY', 'PLAN')
    if (!c.isWord('SELECT', 'WITH', 'VALUES')) throw new Problem(`statement ${c.peek().text.slice(0, 40)}`)
    query(c)
  }
}

/** `PRAGMA name = value` sets, and so does `PRAGMA name(value)` unless the value names what to describe. */
function pragma(c: Cursor): void {
  let name = c.name()
  if (c.takeSign('.')) name = c.name()
  name = name.toLowerCase()
  if (c.takeSign('(')) {
    if (!describingPragmas.has(name)) throw new Problem(`PRAGMA ${name}(`)
    if (!c.takeKind('string', 'number')) c.name()
    c.needSign(')')
  } else if (!plainPragmas.has(name)) throw new Problem(`PRAGMA ${name}`)
  if (c.isSign('=')) throw new Problem(`PRAGMA ${name} =`)
}
