import { checkGrowth } from './postgres-growth.ts'
import { checkJoins, checkRecursion, isSmallQuery } from './postgres-joins.ts'
import { BoundRefusal, type SqlNode, strings } from './postgres-nodes.ts'
import { countSeries } from './postgres-series.ts'

/**
 * Splits a text into a set of words, because a list in one string is shorter than one word per
 * line.
 */
const words = (text: string) => new Set(text.trim().split(/\s+/))

/**
 * Functions of PostgreSQL 18 (its manual's chapter 9, and those behind the pg_stat views) that read
 * or compute and change nothing, not even the session. Words of the grammar (COALESCE) are nodes,
 * not functions.
 */
export const readFunctions = words(`
  count sum avg min max stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp regr_slope
  regr_intercept regr_r2 bool_and bool_or every bit_and bit_or bit_xor array_agg string_agg json_agg jsonb_agg
  json_object_agg jsonb_object_agg percentile_cont percentile_disc mode any_value
  row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
  abs ceil ceiling floor round trunc sign sqrt cbrt exp ln log log10 power mod div gcd lcm random pi
  width_bucket degrees radians sin cos tan
  length char_length character_length octet_length bit_length lower upper initcap concat concat_ws format left right
  substr substring btrim ltrim rtrim lpad rpad replace translate position strpos split_part reverse overlay
  starts_with ascii chr md5 sha224 sha256 sha384 sha512 encode decode to_hex quote_ident quote_literal quote_nullable
  regexp_match regexp_matches regexp_replace regexp_count regexp_instr regexp_like regexp_substr
  regexp_split_to_array regexp_split_to_table string_to_array string_to_table similar_to_escape like_escape
  is_normalized normalize to_char to_number to_date to_timestamp
  now age date_trunc date_part date_bin extract timezone make_date make_time make_timestamp make_timestamptz
  make_interval clock_timestamp statement_timestamp transaction_timestamp timeofday isfinite justify_days
  justify_hours justify_interval overlaps
    num_nonnulls num_nulls
  to_json to_jsonb row_to_json array_to_json json_build_object jsonb_build_object json_build_array jsonb_build_array
  json_object jsonb_object json_array_length jsonb_array_length json_extract_path json_extract_path_text
  jsonb_extract_path jsonb_extract_path_text json_typeof jsonb_typeof jsonb_pretty json_strip_nulls jsonb_strip_nulls
  jsonb_set jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_path_exists jsonb_path_match
  json_each json_each_text jsonb_each jsonb_each_text json_object_keys jsonb_object_keys json_array_elements
  json_array_elements_text jsonb_array_elements jsonb_array_elements_text
  unnest generate_series generate_subscripts array_length array_position array_positions array_to_string array_lower
  array_upper array_ndims array_dims array_append array_prepend array_cat array_remove cardinality
  lower_inc upper_inc isempty host hostmask netmask masklen family text abbrev broadcast network
  version current_database current_schema current_schemas current_query inet_client_addr
  inet_client_port inet_server_addr inet_server_port pg_backend_pid pg_postmaster_start_time pg_conf_load_time
  pg_is_in_recovery pg_is_wal_replay_paused pg_get_wal_replay_pause_state pg_last_wal_receive_lsn
  pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_current_wal_lsn pg_current_wal_insert_lsn
  pg_current_wal_flush_lsn pg_wal_lsn_diff pg_walfile_name pg_walfile_name_offset pg_current_snapshot
  pg_snapshot_xmin pg_snapshot_xmax pg_xact_status pg_current_xact_id_if_assigned txid_current_if_assigned
  txid_current_snapshot txid_snapshot_xmin txid_snapshot_xmax mxid_age pg_last_committed_xact
  pg_xact_commit_timestamp pg_blocking_pids pg_safe_snapshot_blocking_pids
  pg_size_pretty pg_size_bytes pg_database_size pg_tablespace_size pg_relation_size pg_table_size pg_indexes_size
  pg_total_relation_size pg_column_size pg_column_compression pg_relation_filenode pg_relation_filepath
  pg_get_indexdef pg_get_constraintdef pg_get_viewdef pg_get_functiondef pg_get_triggerdef pg_get_ruledef pg_get_expr
  pg_get_userbyid pg_get_serial_sequence pg_get_partkeydef pg_get_statisticsobjdef pg_get_function_arguments
  pg_get_function_identity_arguments pg_get_function_result pg_get_keywords pg_get_replica_identity_index
  pg_partition_tree pg_partition_ancestors pg_partition_root pg_tablespace_location pg_tablespace_databases
  pg_typeof format_type to_regclass to_regtype to_regproc to_regnamespace to_regrole obj_description col_description
  shobj_description pg_describe_object pg_encoding_to_char pg_client_encoding pg_table_is_visible pg_type_is_visible
  pg_function_is_visible has_table_privilege has_database_privilege has_schema_privilege has_column_privilege
  has_any_column_privilege has_function_privilege has_sequence_privilege has_tablespace_privilege pg_has_role
  row_security_active pg_index_column_has_property pg_index_has_property pg_indexam_has_property
  pg_lock_status pg_prepared_xact pg_timezone_names
  current_setting
`)

/** Relations with password hashes, keys, connection strings, or access files. */
export const secretRelations = words(`
  pg_authid pg_shadow pg_user_mapping pg_user_mappings _pg_user_mappings user_mapping_options user_mappings
  pg_foreign_data_wrapper foreign_server_options _pg_foreign_servers foreign_table_options _pg_foreign_tables _pg_foreign_table_columns
  _pg_foreign_data_wrappers
  pg_hba_file_rules pg_ident_file_mappings pg_file_settings pg_largeobject pg_largeobject_metadata
  pg_backend_memory_contexts
`)

/** Operators of pg_catalog. The same symbol in another schema is a user's function. */
export const operators = words(`
  + - * / % ^ = <> != < > <= >= || ~ ~* !~ !~* ~~ ~~* !~~ !~~* ~<~ & | # << >> <<= >>= && @> <@ -> ->> #> #>> ? ?| ?&
  @? @@ -|- |/ ||/ @ ^@ AND OR NOT BETWEEN SYMMETRIC IN IS LIKE
`)

/**
 * Types of pg_catalog whose input functions only read text. A domain, or a type of an extension,
 * may run code.
 */
export const types = words(`
  bool int2 int4 int8 float4 float8 numeric text varchar bpchar char name bytea date time timetz timestamp timestamptz
  interval json jsonb uuid inet cidr macaddr bit varbit oid regclass regproc regprocedure regtype regrole regnamespace
  regoper regoperator pg_lsn xid xid8 cid tid money int4range int8range numrange tsrange tstzrange daterange
`)

/**
 * Columns of functions in FROM that a query may name by the function's alias without a declaration.
 */
export const functionColumns = words('key value ordinality word catcode catdesc name abbrev utc_offset is_dst')

/**
 * Limits the rows that a statement makes without a table. A role may not set `temp_file_limit` for
 * itself (a superuser may), so a query that fills the disk must be detected in its text. Slow
 * queries end by `statement_timeout`, which every role may set.
 */

/** Most rows that a read may make. */
const maxRows = 100_000

/** Throws if a statement makes rows without a bound, or joins tables without a condition. */
export function checkBounds(statement: unknown): void {
  const seen = { rows: 1, small: new Set<string>() }
  visit(statement, seen)
  if (seen.rows > maxRows) throw new BoundRefusal(`more than ${maxRows} rows`)
  checkGrowth(statement, seen.rows)
}

type QueryShape = { rows: number; small: Set<string> }

function visit(value: unknown, seen: QueryShape): void {
  if (value === null || typeof value !== 'object') return
  if (Array.isArray(value)) {
    for (const entry of value) visit(entry, seen)
    return
  }
  for (const [tag, node] of Object.entries(value as SqlNode)) {
    if (node !== null && typeof node === 'object' && !Array.isArray(node)) checks[tag]?.(node as SqlNode, seen)
    visit(node, seen)
  }
}

const checks: Readonly<Record<string, (node: SqlNode, seen: QueryShape) => void>> = {
  FuncCall(node, seen) {
    if (strings(node.funcname).at(-1) === 'generate_series') seen.rows *= countSeries(node)
  },
  SelectStmt: checkSelect,
  larg: checkSelect,
  rarg: checkSelect,
  CommonTableExpr(node) {
    const query = (node.ctequery as { SelectStmt?: SqlNode } | undefined)?.SelectStmt
    if (!query) return
    checkRecursion(String(node.ctename), query)
  },
}

/**
 * Checks a query, or a side of a union. Returns at once for a side of a join, because the fields
 * `larg` and `rarg` hold sides of joins too.
 */
function checkSelect(node: SqlNode, seen: QueryShape): void {
  for (const { CommonTableExpr: named } of ((node.withClause as SqlNode | undefined)?.ctes as Record<
    string,
    SqlNode
  >[]) ?? []) {
    const query = (named?.ctequery as { SelectStmt?: SqlNode } | undefined)?.SelectStmt
    if (named && query && isSmallQuery(query)) seen.small.add(String(named.ctename))
  }
  if (node.targetList === undefined && node.fromClause === undefined) return
  checkJoins(node, seen.small)
}

/** Names of functions in FROM, each with the columns that it certainly has. */
export type FunctionColumns = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Finds a function that is called by a field. PostgreSQL reads `f.name` as a call `name(f)` if `f`
 * is a function in FROM without such a column: `SELECT f.pg_read_file FROM
 * unnest(ARRAY['/etc/passwd']) f` read a file (measured with 18). After such an alias only certain
 * columns are allowed. Rows of tables can be passed to no built-in function that matters, but
 * functions that change something are refused there too. Returns the name that may be called, or
 * null.
 */
export function mayCall(fields: string[], columns: FunctionColumns): string | null {
  const name = fields.at(-1)
  const known = columns.get(fields.at(-2) ?? '')
  if (name === undefined || fields.length < 2) return null
  if (/^(?:pg|lo|dblink|txid)_/.test(name)) return name
  return known && !known.has(name) ? name : null
}

export function functionColumnsOf(statement: unknown): FunctionColumns {
  const found = new Map<string, Set<string>>()
  collectFunctionAliases(statement, found)
  return found
}

function collectFunctionAliases(node: unknown, aliases: Map<string, Set<string>>): void {
  if (node === null || typeof node !== 'object') return
  for (const [key, value] of Object.entries(node)) {
    if (key === 'RangeFunction') addFunctionAlias(value as SqlNode, aliases)
    collectFunctionAliases(value, aliases)
  }
}

/** Functions whose one column certainly has the alias's name, because they have no named result. */
const selfNamed = new Set(['generate_series', 'generate_subscripts', 'string_to_table', 'regexp_split_to_table'])

function addFunctionAlias(node: SqlNode, aliases: Map<string, Set<string>>): void {
  const alias = node.alias as { aliasname?: string; colnames?: unknown } | undefined
  const called = [...JSON.stringify(node.functions ?? '').matchAll(/"sval":"([^"]*)"/g)].map((match) => match[1]!)
  // Refuses COALESCE and CAST in FROM without an alias, because only the server knows their names.
  if (!alias && !/^\[\{"List":\{"items":\[\{"FuncCall"/.test(JSON.stringify(node.functions ?? ''))) {
    throw new BoundRefusal('FROM an expression without an alias')
  }
  const renamed = [...strings(alias?.colnames), ...columnNames(node.coldeflist)]
  for (const name of alias?.aliasname ? [alias.aliasname] : called) {
    const columns = new Set([...functionColumns, ...renamed])
    const first = called.find((word) => word !== 'pg_catalog') ?? ''
    if (renamed.length === 0 && selfNamed.has(first)) columns.add(name)
    // Keeps only the columns of both functions if one alias means two functions in two scopes.
    const before = aliases.get(name)
    aliases.set(name, before ? new Set([...columns].filter((column) => before.has(column))) : columns)
  }
}

function columnNames(definitions: unknown): string[] {
  const list = (definitions ?? []) as { ColumnDef?: { colname?: string } }[]
  return list.map((column) => column.ColumnDef?.colname ?? '')
}
