import { toTimeSql } from '../../clients/databases/postgres.ts'
import type { SqlAnswer } from '../../clients/databases/server.ts'
import { formatCount } from '../../domain/format.ts'
import type { StatementCounts } from '../../domain/statement-snapshot.ts'
import { fitSummary, SourceError } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import { findPast, type PastCost } from './past.ts'
import type { Question } from './question.ts'
import type { SqlRow } from './sessions.ts'
import { hideLiterals } from './statement.ts'
import { type Counted, readTwice } from './twice.ts'

/** The most expensive statements by pg_stat_statements, with their costs now and a week ago. */

const maxCounted = 1_000
const maxShown = 12
/** Number of statement texts that a snapshot keeps. */
const maxTexts = 20

/** Selects the counters of statements. Before version 13, the column of times is `total_time`. */
const countersSql = (major: number): string => `
  select s.userid::text || ' ' || s.dbid::text || ' ' || s.queryid::text as key, s.queryid::text as id,
    s.calls, s.rows, s.${major >= 13 ? 'total_exec_time' : 'total_time'} as total_ms, s.temp_blks_written as temp_blocks,
    s.shared_blks_hit + s.shared_blks_read + s.local_blks_hit + s.local_blks_read + s.temp_blks_read as touched
  from pg_stat_statements s where s.queryid is not null order by total_ms desc limit ${maxCounted}`

/** Selects the texts of the shown statements. Counters are read without texts. */
const textsSql = (ids: readonly string[]): string => `
  select s.queryid::text as id, r.rolname as user, d.datname as database, left(min(s.query), 4000) as query
  from pg_stat_statements s left join pg_roles r on r.oid = s.userid left join pg_database d on d.oid = s.dbid
  where s.queryid::text in (${ids.map((id) => `'${id.replace(/[^\d-]/g, '')}'`).join(', ')}) group by 1, 2, 3`

const extensionSql = `
  select n.nspname as schema from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`

const systemSql = 'select system_identifier::text as system from pg_control_system()'

const sinceSql = `select ${toTimeSql('stats_reset')} as since from pg_stat_statements_info`

const remedy =
  'pg_stat_statements is not in this database: set shared_preload_libraries, then CREATE EXTENSION pg_stat_statements'

const round = (value: number): number => Math.round(value * 10) / 10

/**
 * The extension pg_stat_statements of a server, and since when it counts. Null if it is missing.
 */
type Extension = Pick<StatementCounts, 'server' | 'version' | 'countedSince'> & {
  major: number
  read: (sql: string) => Promise<SqlAnswer>
  /** Adds the extension's schema to the names in a statement. */
  named: (sql: string) => string
}

/**
 * Returns the server's system identifier, which is equal at every address of the server. Empty if
 * this login may not read the identifier.
 */
async function findSystem(ask: AskDatabase): Promise<string> {
  try {
    return String((await ask({ sql: systemSql })).rows[0]?.system ?? '')
  } catch (error) {
    if (error instanceof SourceError && error.code === 'UNAUTHORIZED') return ''
    throw error
  }
}

async function findExtension(ask: AskDatabase): Promise<Extension | null> {
  const { rows, server } = await ask({ sql: extensionSql })
  const [found] = rows
  if (!found) return null
  const schema = String(found.schema).replaceAll('"', '""')
  const named = (sql: string) => sql.replaceAll(/\bpg_stat_statements(?:_info)?\b/g, `"${schema}".$&`)
  const read = (sql: string) => ask({ sql: named(sql) })
  const [info] = server.major >= 14 ? (await read(sinceSql)).rows : []
  const countedSince = info?.since == null ? null : String(info.since)
  return { server: await findSystem(ask), version: server.version, countedSince, major: server.major, read, named }
}

const toCounts = ({ server, version, countedSince }: Extension, rows: readonly SqlRow[]): StatementCounts => ({
  server,
  version,
  countedSince,
  isWhole: rows.length < maxCounted,
  counts: rows.map((row) => ({
    key: String(row.key),
    calls: Number(row.calls),
    ms: Number(row.total_ms),
    rows: Number(row.rows),
    touched: Number(row.touched),
    statement: null,
  })),
})

const readTexts = async ({ read }: Extension, rows: readonly SqlRow[]): Promise<SqlRow[]> =>
  rows.length === 0 ? [] : (await read(textsSql(rows.map(({ id }) => String(id))))).rows

const shownText = (texts: readonly SqlRow[], id: unknown): string =>
  hideLiterals(String(texts.find((each) => each.id === id)?.query ?? ''), 'postgres')

/** Reads the server's counters for a snapshot. Null if the server does not count statements. */
export async function countStatements(ask: AskDatabase): Promise<StatementCounts | null> {
  const extension = await findExtension(ask)
  if (!extension) return null
  const { rows } = await extension.read(countersSql(extension.major))
  const texts = await readTexts(extension, rows.slice(0, maxTexts))
  const counted = toCounts(extension, rows)
  const withText = counted.counts.map((each, place) =>
    place < maxTexts ? { ...each, statement: shownText(texts, rows[place]?.id) } : each,
  )
  return { ...counted, counts: withText }
}

type Shown = { mean_ms: number } | string

type Before = PastCost | 'not called' | 'not kept'

/** Formats the earlier cost of a statement per call and per hour. */
const sayBefore = (before: Before): unknown =>
  typeof before === 'string'
    ? before
    : {
        ...(before.callsAnHour !== undefined && { calls_an_hour: round(before.callsAnHour) }),
        mean_ms: round(before.meanMs),
        blocks_a_call: round(before.touchedACall),
      }

function toItem({ row, now }: Counted, seconds: number, before: Before | null): Record<string, unknown> {
  const { calls = 0, total_ms = 0, temp_blocks = 0, touched = 0 } = now
  const past = { calls: Number(row.calls) - calls, total: Number(row.total_ms) - total_ms }
  const sinceCounted = past.calls > 0 ? { calls: past.calls, mean_ms: round(past.total / past.calls) } : 'not called'
  return {
    now:
      calls > 0
        ? {
            calls_an_hour: Math.round((calls * 3_600) / seconds),
            mean_ms: round(total_ms / calls),
            blocks_a_call: round(touched / calls),
          }
        : 'not called',
    before: before === null ? sinceCounted : sayBefore(before),
    ...(temp_blocks > 0 && { temp_blocks_now: temp_blocks }),
  }
}

async function readStatements(extension: Extension, snapshots: Parameters<typeof findPast>[1]) {
  const of = { key: 'key', counters: ['calls', 'total_ms', 'temp_blocks', 'touched'] }
  const ask: AskDatabase = ({ sql }) => extension.read(sql)
  const { rows, seconds } = await readTwice(ask, countersSql(extension.major), of)
  const past = findPast(
    toCounts(
      extension,
      rows.map(({ row }) => row),
    ),
    snapshots,
    Date.now(),
  )
  const top = rows
    .toSorted(
      (a, b) => (b.now.total_ms ?? 0) - (a.now.total_ms ?? 0) || Number(b.row.total_ms) - Number(a.row.total_ms),
    )
    .slice(0, maxShown)
  const texts = await readTexts(
    extension,
    top.map(({ row }) => row),
  )
  const items = top.map((each) => {
    const text = texts.find(({ id }) => id === each.row.id)
    const statement = shownText(texts, each.row.id)
    const before = past.of?.(String(each.row.key)) ?? null
    return {
      statement,
      user: text?.user ?? null,
      database: text?.database ?? null,
      ...toItem(each, seconds, before),
    }
  })
  return { items, comparedWith: past.against }
}

export const statements: Question = {
  name: 'statements',
  asks: 'what costs most, now and a week before',
  async read(ask, pastStatements) {
    const extension = await findExtension(ask)
    if (!extension) return { summary: { unavailable: remedy }, whole: '', isEmpty: false, isPartial: true }
    const { items, comparedWith } = await readStatements(extension, (await pastStatements?.()) ?? [])
    return {
      summary: fitSummary(items, (kept, omitted) => ({
        countedSince: extension.countedSince ?? 'not known',
        comparedWith,
        statements: kept,
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: items.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: items.length === 0,
    }
  },
  say: ({ statements: shown, unavailable }) => {
    if (unavailable) return String(unavailable)
    const [first] = (shown ?? []) as { statement: string; now: Shown; before: Shown }[]
    const before = typeof first?.before === 'object' ? `, ${first.before.mean_ms} ms before` : ''
    const now = typeof first?.now === 'object' ? `, ${first.now.mean_ms} ms each now${before}` : ''
    return `${formatCount((shown as unknown[]).length, 'statement')} by their time now${first ? `; most: ${first.statement}${now}` : ''}`
  },
}
