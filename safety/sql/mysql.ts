import { Cursor, Problem, readStatements, type Scanner, tokenise } from './cursor.ts'
import { expression, table } from './expression.ts'
import type { SqlFinding } from './inspect.ts'
import {
  clientCommands,
  constants,
  functions,
  harmlessSystemTables,
  intervalUnits,
  operators,
  reserved,
  secretTables,
  types,
} from './mysql-words.ts'
import { query } from './query.ts'

const scanner: Scanner = {
  signs: '->> <=> -> << >> <> != <= >= || && ( ) , . ; * + - / % = < > | & ^ ~ !'.split(' '),
  nameQuotes: { '`': '`' },
  stringQuotes: `'"`,
  hashComments: true,
  dashNeedsBlank: true,
  serverVariables: true,
  backslashEnds: true,
}

const words = {
  reserved,
  functions,
  tableFunctions: new Set<string>(),
  checkTable,
  types,
  operators,
  constants,
  intervalUnits,
  inTable: false,
}

function checkTable(parts: string[]): void {
  const name = parts.at(-1)!
  const schema = parts.at(-2)
  if (secretTables.has(name)) throw new Problem(`table ${name}`)
  if (schema === 'mysql' && !harmlessSystemTables.has(name)) throw new Problem(`table mysql.${name}`)
}

/** MySQL and MariaDB: SELECT, SHOW and EXPLAIN by a closed grammar. */
export function inspectMysql(text: string): SqlFinding {
  try {
    const tokens = tokenise(text, scanner)
    const order = tokens.find((token) => token.opensLine && clientCommands.has(token.word))
    if (order) return { readOnly: false, reason: `client command ${order.word}` }
    const c = new Cursor(tokens, words, query)
    const kinds = readStatements(c, statement)
    if (kinds.length === 0) return { readOnly: false, reason: 'no statement' }
    return { readOnly: true, reason: kinds.join(', ') }
  } catch (error) {
    if (error instanceof Problem) return { readOnly: false, reason: error.message }
    throw error
  }
}

function statement(c: Cursor): void {
  if (c.takeWord('SHOW')) show(c)
  else if (c.takeWord('EXPLAIN', 'DESCRIBE', 'DESC')) explain(c)
  else if (c.isWord('SELECT', 'WITH', 'VALUES', 'TABLE') || c.isSign('(')) query(c)
  else throw new Problem(`statement ${c.peek().text.slice(0, 40)}`)
}

function explain(c: Cursor): void {
  if (c.takeWords('FOR', 'CONNECTION')) {
    c.needKind('number')
    return
  }
  if (c.takeWord('FORMAT')) {
    c.needSign('=')
    c.needWord('TRADITIONAL', 'JSON', 'TREE')
  } else c.takeWord('EXTENDED', 'PARTITIONS')
  if (c.isWord('SELECT', 'WITH', 'VALUES') || c.isSign('(')) query(c)
  else {
    table(c)
    // DESCRIBE shows one column, or those like a pattern.
    if (!c.takeKind('string') && c.isName()) c.take()
  }
}

type Tail = (c: Cursor) => void

/** `LIKE 'pattern'` or `WHERE expression`. */
const filter: Tail = (c) => {
  if (c.takeWord('LIKE')) c.needKind('string')
  else if (c.takeWord('WHERE')) expression(c)
}
const inSchema: Tail = (c) => {
  if (c.takeWord('FROM', 'IN')) c.name()
  filter(c)
}
const ofTable: Tail = (c) => {
  c.needWord('FROM', 'IN')
  table(c)
  inSchema(c)
}
const named: Tail = (c) => table(c)
const limited: Tail = (c) => {
  if (!c.takeWord('LIMIT')) return
  c.needKind('number')
  if (c.takeSign(',')) c.needKind('number')
}
const channel: Tail = (c) => {
  if (c.takeWords('FOR', 'CHANNEL')) c.needKind('string')
  else c.takeKind('string')
}
const nothing: Tail = () => {}

/** What SHOW may show, with what may follow (manual, section 15.7.7). GRANTS and CREATE USER print hashes. */
const shows: [words: string, tail: Tail][] = [
  ['REPLICA STATUS', channel],
  ['SLAVE STATUS', channel],
  ['ALL REPLICAS STATUS', nothing],
  ['ALL SLAVES STATUS', nothing],
  ['MASTER STATUS', nothing],
  ['BINARY LOG STATUS', nothing],
  ['BINLOG STATUS', nothing],
  ['BINARY LOGS', nothing],
  ['MASTER LOGS', nothing],
  ['REPLICAS', nothing],
  ['REPLICA HOSTS', nothing],
  ['SLAVE HOSTS', nothing],
  ['PROCESSLIST', nothing],
  ['FULL PROCESSLIST', nothing],
  ['VARIABLES', filter],
  ['GLOBAL VARIABLES', filter],
  ['SESSION VARIABLES', filter],
  ['LOCAL VARIABLES', filter],
  ['STATUS', filter],
  ['GLOBAL STATUS', filter],
  ['SESSION STATUS', filter],
  ['LOCAL STATUS', filter],
  ['ENGINE INNODB STATUS', nothing],
  ['ENGINE INNODB MUTEX', nothing],
  ['ENGINE PERFORMANCE_SCHEMA STATUS', nothing],
  ['ENGINES', nothing],
  ['STORAGE ENGINES', nothing],
  ['DATABASES', filter],
  ['SCHEMAS', filter],
  ['TABLES', inSchema],
  ['FULL TABLES', inSchema],
  ['EXTENDED TABLES', inSchema],
  ['OPEN TABLES', inSchema],
  ['TABLE STATUS', inSchema],
  ['TRIGGERS', inSchema],
  ['EVENTS', inSchema],
  ['COLUMNS', ofTable],
  ['FULL COLUMNS', ofTable],
  ['FIELDS', ofTable],
  ['FULL FIELDS', ofTable],
  ['INDEX', ofTable],
  ['INDEXES', ofTable],
  ['KEYS', ofTable],
  ['CREATE TABLE', named],
  ['CREATE VIEW', named],
  ['CREATE DATABASE', named],
  ['CREATE SCHEMA', named],
  ['CREATE TRIGGER', named],
  ['CREATE EVENT', named],
  ['CREATE FUNCTION', named],
  ['CREATE PROCEDURE', named],
  ['FUNCTION STATUS', filter],
  ['PROCEDURE STATUS', filter],
  ['CHARACTER SET', filter],
  ['COLLATION', filter],
  ['WARNINGS', limited],
  ['ERRORS', limited],
  ['PLUGINS', nothing],
  ['PRIVILEGES', nothing],
  ['PROFILES', nothing],
]

function show(c: Cursor): void {
  const shown = shows.find(([names]) => c.takeWords(...names.split(' ')))
  if (!shown) throw new Problem(`SHOW ${c.peek().text.slice(0, 40)}`)
  shown[1](c)
}
