import { inspectSql } from '../sql/inspect.ts'
import { inspectAwk } from './awk.ts'
import {
  inspectContainerTemplate,
  inspectJournalFields,
  inspectKubernetesOutput,
  inspectListTemplate,
} from './fields.ts'
import type { Language } from './grammar.ts'
import { inspectJq } from './jq.ts'
import { inspectSed } from './sed.ts'

/** Returns why a text in a small language does more than read; null if it only reads. */
type Inspect = (text: string) => string | null

const sql =
  (dialect: 'postgres' | 'mysql' | 'sqlite'): Inspect =>
  (text) => {
    const { readOnly, reason } = inspectSql(dialect, text)
    return readOnly ? null : reason
  }

/**
 * Matches commands of psql(1) that list. Excluded: foreign servers, user mappings and
 * subscriptions, whose options hold passwords, and \\dconfig and \\drds, which show settings.
 */
const listing =
  /^\s*\\(?:d(?:[aAbcCdDEfgilLmnoOpPstTuvxXy]|ac|dp|rg|Rp|F[dpt]?|P[it]*|o[S+]*|fn|fa|fp|fw|ft|it|ti|tv|tvs|ts)?[S+x]*|l|z|conninfo|encoding|sf|sv)[S+x]*(?:\s+[\w.*?"$()-]+)?\s*$/

function inspectPsql(text: string): string | null {
  // Requires a plain name with a plus, because otherwise the code of all functions is printed.
  if (/^\s*\\df\w*\+/.test(text) && !/\s\w[\w.]*\s*$/.test(text))
    return 'the query prints the source of functions that are not named'
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
  ['fields:list', inspectListTemplate],
  ['fields:journal', inspectJournalFields],
  ['fields:kubernetes', inspectKubernetesOutput],
])

/**
 * Checks input of cqlsh strictly: one statement that describes or selects, with functions that only
 * compute.
 */

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

function inspectCql(text: string): string | null {
  const statement = text
    .trim()
    .replace(/;\s*$/, '')
    .replace(/'[^']*'/g, "''")
  if (/\bsystem_(?:auth|distributed_auth)\b/i.test(statement)) return 'the query shows password hashes'
  if (/^(?:consistency|serial\s+consistency|show\s+(?:version|host))$/i.test(statement)) return null
  return describe.test(statement) || select.test(statement)
    ? null
    : 'the statement is not a known read-only SELECT or DESCRIBE'
}

/**
 * Checks ClickHouse's SQL strictly: one statement that reads, with listed words and functions. A
 * table function (`url`, `file`, `remote`) looks like any other, so a name before a parenthesis
 * must be listed.
 */

const functions = new Set(
  `abs any anyIf argMax argMin avg avgIf ceil coalesce concat count countIf countDistinct date_diff dateDiff dateName dateTrunc date_trunc empty
   floor formatDateTime formatReadableDecimalSize formatReadableQuantity formatReadableSize formatReadableTimeDelta greatest groupArray
   groupUniqArray hostName if ifNull intDiv least length lower max maxIf min minIf multiIf now notEmpty nullIf quantile quantiles round
   startsWith endsWith left right substring sum sumIf toDate toDateTime toFloat64 toHour toInt64 toMinute toStartOfDay toStartOfFiveMinutes
   toStartOfHour toStartOfInterval toStartOfMinute toString toUInt64 today toYYYYMM topK trim uniq uniqExact uniqIf upper uptime version
   yesterday like median stddevPop anyLast lag lead rank row_number dense_rank sumMap arrayJoin has position splitByChar replaceAll
   in and or not from join as on using where prewhere having select by over values then else when union all distinct between limit interval`
    .split(/\s+/)
    .map((name) => name.toLowerCase()),
)

/**
 * System tables about the server itself. Excluded: users, credentials, keys, and what is fetched
 * from other servers.
 */
const systemTables = new Set(
  `asynchronous_inserts asynchronous_metric_log asynchronous_metrics build_options clusters columns contributors crash_log data_skipping_indices
   detached_parts disks distribution_queue errors events functions graphite_retentions macros merge_tree_settings merges metric_log metrics
   moves mutations one part_log parts parts_columns processes query_log query_thread_log replicas replicated_fetches
   replication_queue settings storage_policies table_engines time_zones trace_log tables databases dictionaries warnings`.split(
    /\s+/,
  ),
)

/** Matches columns with the definition of a table on another server, which shows a password. */
const definitions = /\*(?!\s*\))|\b(?:create_table_query|engine_full|as_select|source|data_paths|definer)\b/i

function inspectClickhouse(text: string): string | null {
  const statement = text.trim().replace(/;\s*$/, '')
  if (/["`\\]|--|\/\*|#|\{/.test(statement)) return 'a comment, a quoted name or a parameter'
  const code = statement.replace(/'[^']*'/g, "''")
  if (code.replaceAll("''", '').includes("'") || code.includes(';')) return 'more than one statement'
  if (/\s\.|\.\s/.test(code)) return 'a name with blanks around a dot'
  const settles = /\b(?:into|outfile|settings(?<!\bsystem\.settings)|infile|watch|insert|system(?!\.))\b/i.exec(code)
  if (settles) return `${settles[0]} does more than read`
  if (/^show\s+(?:databases|tables(?:\s+from\s+\w+)?|processlist|clusters|engines|functions)$/i.test(code)) return null
  if (/^(?:desc|describe|exists)\s+(?:table\s+)?\w+(?:\.\w+)?$/i.test(code))
    return /^\S+\s+(?:table\s+)?(?:user|role|quota|profile)\b/i.test(code)
      ? 'a definition that may hold a secret'
      : null
  if (!/^(?:explain\s+(?:plan\s+|syntax\s+|estimate\s+)?)?(?:select|with)\s/i.test(code))
    return 'the statement is not a SELECT'
  for (const [, name = ''] of code.matchAll(/([\w.]+)\s*\(/g))
    if (!functions.has(name.toLowerCase())) return `${name} is not a known read-only function`
  for (const [, name = ''] of code.matchAll(/\bsystem\.(\w+)/gi))
    if (!systemTables.has(name.toLowerCase())) return `system.${name} may hold secrets`
  if (/\bsystem\.(?:tables|databases|dictionaries)\b/i.test(code) && definitions.test(code))
    return 'a definition that may hold a secret'
  return null
}

/**
 * Checks JavaScript for mongosh strictly: a chain of listed methods with literal arguments.
 * Functions, variables and computed names are refused.
 */

const topics = 'dbs|databases|collections|tables|profile|log(?:s| global)?'
/** Methods that ask about the server itself, with literals or nothing in the parentheses. */
const asks: Readonly<Record<string, string>> = {
  rs: 'conf|config|hello|isMaster|printReplicationInfo|printSecondaryReplicationInfo|printSlaveReplicationInfo|status',
  sh: 'status|getBalancerState|isBalancerRunning',
  db: `currentOp|getCollectionInfos|getCollectionNames|getName|getProfilingStatus|getReplicationInfo|hello|hostInfo|isMaster|printCollectionStats|
       printReplicationInfo|printSecondaryReplicationInfo|serverBuildInfo|serverStatus|stats|version`.replace(
    /\s+/g,
    '',
  ),
}
const commands =
  'ping|hello|isMaster|buildInfo|collStats|connPoolStats|currentOp|dbStats|hostInfo|listDatabases|listCollections|replSetGetStatus|replSetGetConfig|serverStatus|top|getShardMap|listShards|balancerStatus|validateDBMetadata'
const ofCollection =
  'count|countDocuments|dataSize|distinct|estimatedDocumentCount|getIndexes|getShardDistribution|isCapped|latencyStats|stats|storageSize|totalIndexSize|totalSize'
const operators =
  /^\$(?:eq|ne|gt|gte|lt|lte|in|nin|and|or|nor|not|exists|type|size|all|elemMatch|mod|regex|options|date|oid|numberLong)$/

const literal = `(?:[^()"'\`\\\\/;=]|"[^"\\\\]*"|'[^'\\\\]*')*`
const chains = [
  new RegExp(`^rs\\.(?:${asks.rs})\\(\\)`),
  new RegExp(`^sh\\.(?:${asks.sh})\\(\\)`),
  new RegExp(`^db\\.(?:${asks.db})\\((${literal})\\)`),
  new RegExp(
    `^db\\.(?:runCommand|adminCommand)\\((\\{\\s*["']?(?:${commands})["']?\\s*:\\s*(?:1|true|"\\w+"|'\\w+')\\s*\\})\\)`,
  ),
  new RegExp(`^db\\.(?:runCommand|adminCommand)\\(["'](?:${commands})["']\\)`),
  /^db\.getMongo\(\)\.getDBNames\(\)/,
  new RegExp(`^db\\.(?!system\\b|_)[A-Za-z]\\w*\\.(?:${ofCollection})\\((${literal})\\)`),
  new RegExp(
    `^db\\.(?!system\\b|_)[A-Za-z]\\w*\\.(?:find|findOne)\\((${literal})\\)(?:\\.sort\\((${literal})\\))?(?:\\.limit\\([1-9]\\d{0,3}\\)|\\.count\\(\\)|\\.explain\\((?:["']queryPlanner["'])?\\))(?:\\.toArray\\(\\)|\\.pretty\\(\\))?`,
  ),
]
/**
 * Matches what selects a part of an answer: properties, and an arrow function whose body is
 * properties, strings and sums.
 */
const picks =
  /^(?:\.(?!constructor\b|__|prototype\b)[A-Za-z]\w*(?![\w(])|\[\d+\]|\.(?:map|filter)\(\(?([a-z]\w*)\)? => (?:(?:\1(?:\.(?!constructor\b|__|prototype\b)[A-Za-z]\w*)+|"[^"\\]*"|'[^'\\]*'|\d+)(?:\s*(?:\+|===?|!==?|[<>]=?)\s*|(?=\))))+\)|\.(?:pretty|toArray)\(\))*$/
const prints = /^(?:JSON\.stringify|EJSON\.stringify|printjson|print|tojson)\((.*?)(?:,\s*null,\s*\d)?\)$/s

function inspectMongosh(text: string): string | null {
  if (!/^[\x20-\x7e\n]*$/.test(text) || text.length > 2000) return 'the text is too long or has unusual characters'
  const statements = text
    .trim()
    .replace(/;\s*$/, '')
    .split(/;\s*|\n+/)
  for (const statement of statements) {
    const why = inspectStatement(statement.trim(), 0)
    if (why) return why
  }
  return null
}

function inspectStatement(text: string, depth: number): string | null {
  if (depth > 2) return 'the query nests prints too deeply'
  if (new RegExp(`^show (?:${topics})$`).test(text) || /^-?\d+$/.test(text)) return null
  const printed = prints.exec(text)
  if (printed) return inspectStatement(printed[1]!.trim(), depth + 1)
  for (const chain of chains) {
    const found = chain.exec(text)
    if (!found) continue
    const odd = found.slice(1).find((given) => given !== undefined && !isLiteral(given))
    if (odd !== undefined) return `${odd} is more than a plain document`
    if (picks.test(text.slice(found[0].length))) return null
  }
  return 'the text is not a known read-only query'
}

/**
 * Whether a text consists of braces, brackets, strings, numbers and plain keys, and so runs no
 * code.
 */
function isLiteral(text: string): boolean {
  const bare = text.replace(/"[^"\\]*"|'[^'\\]*'/g, (string) => (string[1] === '$' ? string.slice(1, -1) : '0'))
  if (!/^[\w\s{}[\]:,.$-]*$/.test(bare)) return false
  const words = bare.match(/\$?[A-Za-z_]\w*/g) ?? []
  return words.every((word) =>
    word.startsWith('$') ? operators.test(word) : !/^(?:function|new|this|async|await)$/.test(word),
  )
}
