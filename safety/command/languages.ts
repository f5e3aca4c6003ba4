import { inspectSql } from '../sql/inspect.ts'
import { inspectAwk } from './awk.ts'
import { inspectClickhouse } from './clickhouse.ts'
import { inspectContainerTemplate, inspectKubernetesOutput } from './fields.ts'
import type { Language } from './grammar.ts'
import { inspectMongosh } from './mongosh.ts'
import { inspectSed } from './sed.ts'

/** Why a text in a small language does more than look; null when it only looks. */
type Inspect = (text: string) => string | null

const sql =
  (dialect: 'postgres' | 'mysql' | 'sqlite'): Inspect =>
  (text) => {
    const { readOnly, reason } = inspectSql(dialect, text)
    return readOnly ? null : reason
  }

/**
 * Commands of psql(1) that list what is there. Left out: foreign servers, user mappings and subscriptions, whose options hold passwords,
 * and \\dconfig, which shows settings.
 */
const listing =
  /^\s*\\(?:d(?:[aAbcCdDEfgilLmnoOpPstTuvxXy]|ac|dp|rds|rg|Rp|F[dpt]?|P[it]*|o[S+]*|fn|fa|fp|fw|ft|it|ti|tv|tvs|ts)?[S+x]*|l|z|conninfo|encoding|sf|sv)[S+x]*(?:\s+[\w.*?"$()-]+)?\s*$/

function inspectPsql(text: string): string | null {
  return listing.test(text) ? null : sql('postgres')(text)
}

export const languages: ReadonlyMap<string, Inspect> = new Map<Language, Inspect>([
  ['awk', inspectAwk],
  ['sed', inspectSed],
  ['jq', inspectJq],
  ['sql:postgres', sql('postgres')],
  ['psql', inspectPsql],
  ['sql:mysql', sql('mysql')],
  ['sql:sqlite', sql('sqlite')],
  ['sql:clickhouse', inspectClickhouse],
  ['cql', inspectCql],
  ['mongosh', inspectMongosh],
  ['fields:container', inspectContainerTemplate],
  ['fields:kubernetes', inspectKubernetesOutput],
])

/**
 * jq reads its input and nothing else, but for a few words: the environment and modules. Strings are not skipped, since `\\( … )`
 * inside one is code again; a field of that name (`.env`) is only a field.
 */
const reaching =
  /(?<![.\w])\$?(?:env|ENV|include|import|modulemeta|get_search_list|input_filename|debug|stderr|halt_error)(?!\w)/

/** What can go on for ever or grow without a bound that stands in the text. */
const endless =
  /(?<![.\w$])(?:def|while|until|repeat)(?!\w)|(?<![.\w$])range\s*\((?!\s*(?:\d{1,6}|length)(?:\s*;\s*(?:\d{1,6}|length))?\s*\))|\*\s*(?:\d{7,}|\d[\d.]*[eE])|(?:\d{7,}|\d[\d.]*[eE]\+?\d+)\s*\*/

export function inspectJq(program: string): string | null {
  const unbounded = endless.exec(program)
  if (unbounded) return `${unbounded[0]} may never end`
  const found = reaching.exec(program)
  return found ? `${found[0]} reaches beyond the input` : null
}

/** What is typed into cqlsh, read strictly: one statement that describes or selects, without a function but those that count. */

const describe =
  /^desc(?:ribe)?\s+(?:cluster|keyspaces|tables|types|functions|aggregates|schema|(?:keyspace|table|columnfamily|index|materialized\s+view|type)\s+\w+(?:\.\w+)?|\w+(?:\.\w+)?)$/i
const name = '\\w+(?:\\.\\w+)?'
const column = `(?:\\*|(?:count|min|max|avg|sum|token|ttl|writetime|totimestamp|dateof)\\s*\\(\\s*(?:\\*|\\w+|\\d+)\\s*\\)|\\w+)(?:\\s+as\\s+\\w+)?`
const condition = `(?:\\w+|token\\s*\\(\\s*\\w+\\s*\\))\\s*(?:=|<=?|>=?)\\s*(?:''|-?[\\w.:-]+)`
const select = new RegExp(
  `^select\\s+(?:distinct\\s+)?${column}(?:\\s*,\\s*${column})*\\s+from\\s+${name}` +
    `(?:\\s+where\\s+${condition}(?:\\s+and\\s+${condition})*)?(?:\\s+limit\\s+\\d+)?(?:\\s+allow\\s+filtering)?$`,
  'i',
)

export function inspectCql(text: string): string | null {
  const statement = text
    .trim()
    .replace(/;\s*$/, '')
    .replace(/'[^']*'/g, "''")
  if (/\bsystem_(?:auth|distributed_auth)\b/i.test(statement)) return 'it shows password hashes'
  if (/^(?:consistency|serial\s+consistency|show\s+(?:version|host))$/i.test(statement)) return null
  return describe.test(statement) || select.test(statement)
    ? null
    : 'it is not a SELECT or DESCRIBE that is known to only look'
}
