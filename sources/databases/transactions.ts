import { formatCount } from '../../domain/format.ts'
import { fitSummary } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import type { Question } from './question.ts'
import type { LongTransaction, OpenTransactions, ServerReader } from './reader.ts'
import { describeSession, type SqlRow, sessionColumns, toSession } from './sessions.ts'

/** Transactions that are open for long: the cleanup that they hold back, and which are idle. */

const longSql = `
  select ${sessionColumns}, age(a.backend_xmin) as holds_back,
    extract(epoch from now() - a.xact_start)::int as open_seconds
  from pg_stat_activity a
  where a.xact_start is not null and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
  order by a.xact_start limit 20`

const preparedSql = `
  select gid, owner, database, age(transaction) as holds_back, extract(epoch from now() - prepared)::int as open_seconds
  from pg_prepared_xacts order by prepared limit 10`

const runningSql = `
  select ${sessionColumns}, extract(epoch from now() - a.query_start)::int as open_seconds
  from pg_stat_activity a where a.backend_type = 'autovacuum worker' order by a.query_start limit 5`

export async function readTransactions(ask: AskDatabase): Promise<OpenTransactions> {
  const long = (await ask({ sql: longSql })).rows.map((row) => ({
    ...toSession(row),
    openSeconds: Number(row.open_seconds),
    holdsBack: row.holds_back === null ? null : Number(row.holds_back),
  }))
  const prepared = (await ask({ sql: preparedSql })).rows
  const vacuums = (await ask({ sql: runningSql })).rows.map((row) => describeSession(toSession(row)))
  return { long, prepared, vacuums }
}

export const askTransactions = (readOpen: ServerReader['readTransactions']): Question => ({
  name: 'transactions',
  asks: 'long, idle, prepared',
  async read(ask) {
    const { long, prepared, vacuums } = await readOpen(ask)
    return {
      summary: fitSummary(long, (kept, omitted) => ({
        transactions: kept,
        ...(prepared.length > 0 && { prepared }),
        ...(vacuums.length > 0 && { vacuums }),
        ...(omitted > 0 && { notShown: omitted }),
      })),
      whole: [...long, ...prepared].map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: long.length === 0 && prepared.length === 0,
    }
  },
  say: ({ transactions: shown, prepared }) => {
    const [first] = (shown ?? []) as LongTransaction[]
    const also = prepared ? `, ${formatCount((prepared as SqlRow[]).length, 'prepared transaction')}` : ''
    if (!first) return `no transaction is open${also}`
    return `the oldest of ${formatCount((shown as unknown[]).length, 'transaction')} is open for ${first.openSeconds} s: session ${first.pid} of ${first.user}, ${first.state}${also}`
  },
})

export const transactions: Question = askTransactions(readTransactions)
