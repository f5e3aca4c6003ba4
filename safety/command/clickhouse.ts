/**
 * ClickHouse's SQL, read strictly: one statement that only looks, of words and functions that are named here. A table function (`url`,
 * `file`, `remote`) is written like any other, so a name before a parenthesis has to be on the list.
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

/** What the server tells about itself. Left out: users, credentials, keys, and what is fetched from elsewhere. */
const systemTables = new Set(
  `asynchronous_inserts asynchronous_metric_log asynchronous_metrics build_options clusters columns contributors crash_log data_skipping_indices
   detached_parts disks distribution_queue errors events functions graphite_retentions macros merge_tree_settings merges metric_log metrics
   moves mutations one part_log parts parts_columns processes query_log query_thread_log replicas replicated_fetches
   replication_queue settings storage_policies table_engines time_zones trace_log tables databases dictionaries warnings`.split(
    /\s+/,
  ),
)

/** How a table of another server is defined, with the password for it. */
const definitions = /\*(?!\s*\))|\b(?:create_table_query|engine_full|as_select|source|data_paths|definer)\b/i

export function inspectClickhouse(text: string): string | null {
  const statement = text.trim().replace(/;\s*$/, '')
  if (/["`\\]|--|\/\*|#|\{/.test(statement)) return 'a comment, a quoted name or a parameter'
  const code = statement.replace(/'[^']*'/g, "''")
  if (code.replaceAll("''", '').includes("'") || code.includes(';')) return 'more than one statement'
  if (/\s\.|\.\s/.test(code)) return 'a name in pieces'
  const settles = /\b(?:into|outfile|settings(?<!\bsystem\.settings)|infile|watch|insert|system(?!\.))\b/i.exec(code)
  if (settles) return `${settles[0]} does more than ask`
  if (/^show\s+(?:databases|tables(?:\s+from\s+\w+)?|processlist|clusters|engines|functions)$/i.test(code)) return null
  if (/^(?:desc|describe|exists)\s+(?:table\s+)?\w+(?:\.\w+)?$/i.test(code))
    return /^\S+\s+(?:table\s+)?(?:user|role|quota|profile)\b/i.test(code)
      ? 'a definition that may hold a secret'
      : null
  if (!/^(?:explain\s+(?:plan\s+|syntax\s+|estimate\s+)?)?(?:select|with)\s/i.test(code)) return 'it is no SELECT'
  for (const [, name = ''] of code.matchAll(/([\w.]+)\s*\(/g))
    if (!functions.has(name.toLowerCase())) return `${name} is not a function that is known to only look`
  for (const [, name = ''] of code.matchAll(/\bsystem\.(\w+)/gi))
    if (!systemTables.has(name.toLowerCase())) return `system.${name} may hold secrets`
  if (/\bsystem\.(?:tables|databases|dictionaries)\b/i.test(code) && definitions.test(code))
    return 'a definition that may hold a secret'
  return null
}
