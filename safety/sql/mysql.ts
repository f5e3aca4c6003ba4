import { Cursor, readStatements, type Scanner, SqlProblem, type Token, tokenise } from './cursor.ts'
import { expression, table } from './expression.ts'
import type { SqlFinding } from './inspect.ts'
import { query } from './query.ts'

const setOf = (text: string) => new Set(text.trim().split(/\s+/))

/**
 * Words of MySQL 8.4 and 9 and of MariaDB that are not names unless they are quoted (manual,
 * "Keywords and Reserved Words").
 */
const reserved = setOf(`
  ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE CASE
  CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT CREATE CROSS CUBE CUME_DIST
  CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DAY_HOUR DAY_MICROSECOND
  DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT
  DISTINCTROW DIV DO DOUBLE DROP DUAL DUMPFILE EACH ELSE ELSEIF EMPTY ENCLOSED END ESCAPED EXCEPT EXECUTE EXISTS EXIT
  EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT
  GROUP GROUPING GROUPS HANDLER HAVING HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE
  INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IO_AFTER_GTIDS
  IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING LEAVE LEFT LIKE LIMIT
  LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY MANUAL MASTER_BIND
  MASTER_SSL_VERIFY_SERVER_CERT MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND
  MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE NULL NUMERIC OF ON OPTIMIZE
  OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARALLEL PARTITION PERCENT_RANK PRECISION PRIMARY
  PROCEDURE PURGE QUALIFY RANGE RANK READ READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT
  REPLACE REQUIRE RESIGNAL RESTRICT RETURN RETURNING REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA SCHEMAS
  SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL SQLEXCEPTION SQLSTATE
  SQLWARNING SQL_BIG_RESULT SQL_BUFFER_RESULT SQL_CACHE SQL_CALC_FOUND_ROWS SQL_NO_CACHE SQL_SMALL_RESULT SSL STARTING
  STORED STRAIGHT_JOIN SYSTEM TABLE TABLESAMPLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE UNDO
  UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR
  VARCHARACTER VARYING VIRTUAL WAIT WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL FILTER OFFSET LATERAL
  NOWAIT SKIP LOCKED SHARE ATTACH DETACH PREPARE DEALLOCATE
`)

/**
 * Functions of the manual's chapter 14 that compute or read: they change nothing, wait for nothing,
 * and open no file.
 */
const functions = setOf(`
  count sum avg min max std stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor group_concat
  json_arrayagg json_objectagg any_value grouping row_number rank dense_rank percent_rank cume_dist ntile lag lead
  first_value last_value nth_value
  abs ceil ceiling floor round truncate sign sqrt pow power exp ln log log2 log10 mod pi rand conv crc32 greatest least
  format bin oct hex unhex
  if ifnull nullif coalesce isnull
  concat concat_ws length char_length character_length octet_length bit_length lower lcase upper ucase left right
  substr substring substring_index mid trim ltrim rtrim lpad rpad replace reverse repeat space locate instr position
  field find_in_set elt strcmp ascii ord char quote soundex regexp_like regexp_instr regexp_substr
  regexp_replace to_base64 from_base64 md5 sha sha1 sha2
  now curdate curtime current_date current_time current_timestamp sysdate utc_date utc_time utc_timestamp localtime
  localtimestamp date time year month day hour minute second microsecond quarter week weekday weekofyear yearweek
  dayofweek dayofmonth dayofyear dayname monthname date_add date_sub adddate subdate addtime subtime datediff timediff
  timestampdiff timestampadd timestamp date_format time_format str_to_date from_unixtime unix_timestamp from_days
  to_days to_seconds sec_to_time time_to_sec makedate maketime last_day extract convert_tz period_add period_diff
  cast convert inet_aton inet_ntoa inet6_aton inet6_ntoa is_ipv4 is_ipv6 is_uuid bin_to_uuid uuid_to_bin
  format_bytes format_pico_time
  json_extract json_unquote json_value json_contains json_contains_path json_keys json_length json_depth json_type
  json_valid json_array json_object json_quote json_search json_pretty json_overlaps json_storage_size
  version database schema user current_user session_user system_user connection_id current_role charset collation
  coercibility found_rows row_count gtid_subset gtid_subtract ps_current_thread_id ps_thread_id
`)

const types = setOf('BINARY CHAR DATE DATETIME DECIMAL DOUBLE FLOAT JSON REAL SIGNED TIME UNSIGNED YEAR INTEGER')

const operators = setOf('AND OR XOR LIKE REGEXP RLIKE DIV MOD BETWEEN ESCAPE')

const constants = setOf(`
  NULL TRUE FALSE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME
  UTC_TIMESTAMP
`)

const intervalUnits = setOf(`
  MICROSECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR SECOND_MICROSECOND MINUTE_MICROSECOND MINUTE_SECOND
  HOUR_MICROSECOND HOUR_SECOND HOUR_MINUTE DAY_MICROSECOND DAY_SECOND DAY_MINUTE DAY_HOUR YEAR_MONTH
`)

/** Tables of the schema `mysql` that have no accounts, keys, connections or statements. */
const harmlessSystemTables = setOf(`
  innodb_index_stats innodb_table_stats gtid_executed help_category help_keyword help_relation help_topic time_zone
  time_zone_leap_second time_zone_name time_zone_transition time_zone_transition_type engine_cost server_cost
`)

/** Tables that hold password hashes, keys or passwords, whatever schema is the default. */
const secretTables = setOf(`
  user authentication_string global_priv db proxies_priv password_history slave_master_info
  slave_relay_log_info servers default_roles role_edges user_variables_by_thread keyring_keys keyring_component_status
  user_attributes persisted_variables session_connect_attrs session_account_connect_attrs
`)

/**
 * Columns of information_schema with code, or with values of other columns. A running statement is
 * shown, as in PostgreSQL, because it is needed to find a session that blocks others.
 */
const hiddenColumns: Readonly<Record<string, string>> = {
  routines: 'routine_definition',
  events: 'event_definition',
  triggers: 'action_statement',
  column_statistics: 'histogram',
}

function checkColumns(tokens: readonly Token[]): void {
  const names = tokens.map(({ text }) => text.toLowerCase())
  for (const [table, column] of Object.entries(hiddenColumns)) {
    const isRead = names.some(
      (name, at) => name === table && names[at - 1] === '.' && names[at - 2] === 'information_schema',
    )
    const isWhole = names.some(
      (name, at) => (name === '*' && /^(?:select|distinct|all|,|\.)$/.test(names[at - 1]!)) || name === 'table',
    )
    if (names.includes(column) || (isRead && (isWhole || names.includes('natural'))))
      throw new SqlProblem(`column ${column} of ${table}: it holds what its author wrote, or values`)
  }
}

/** Words that the client itself executes at the start of a line. */
const clientCommands = setOf(
  'SOURCE SYSTEM TEE NOTEE PAGER NOPAGER EDIT DELIMITER CONNECT USE EXIT QUIT GO EGO CLEAR PRINT PROMPT REHASH RESETCONNECTION',
)

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
  if (secretTables.has(name)) throw new SqlProblem(`table ${name}`)
  if (schema === 'mysql' && !harmlessSystemTables.has(name)) throw new SqlProblem(`table mysql.${name}`)
}

/** Checks texts for MySQL and MariaDB: SELECT, SHOW and EXPLAIN by a closed grammar. */
export function inspectMysql(text: string): SqlFinding {
  try {
    const tokens = tokenise(text, scanner)
    const order = tokens.find((token) => token.opensLine && clientCommands.has(token.word))
    if (order) return { readOnly: false, reason: `client command ${order.word}` }
    const c = new Cursor(tokens, words, query)
    const kinds = readStatements(c, statement)
    checkColumns(tokens)
    if (kinds.length === 0) return { readOnly: false, reason: 'no statement' }
    return { readOnly: true, reason: kinds.join(', ') }
  } catch (error) {
    if (error instanceof SqlProblem) return { readOnly: false, reason: error.message }
    throw error
  }
}

function statement(c: Cursor): void {
  if (c.takeWord('SHOW')) show(c)
  else if (c.takeWord('EXPLAIN', 'DESCRIBE', 'DESC')) explain(c)
  else if (c.isWord('SELECT', 'WITH', 'VALUES', 'TABLE') || c.isSign('(')) query(c)
  else throw new SqlProblem(`statement ${c.peek().text.slice(0, 40)}`)
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
    // Reads the column that DESCRIBE shows, or the pattern of the columns that it shows.
    if (!c.takeKind('string') && c.isName()) c.take()
  }
}

type Tail = (c: Cursor) => void

/** Reads `LIKE 'pattern'` or `WHERE expression`. */
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

/**
 * Objects of SHOW, each with what may follow (manual, section 15.7.7). Excluded: GRANTS and CREATE
 * USER, which print hashes.
 */
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
  if (!shown) throw new SqlProblem(`SHOW ${c.peek().text.slice(0, 40)}`)
  shown[1](c)
}
