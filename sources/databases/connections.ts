import { toTimeSql } from '../../clients/databases/postgres.ts'
import { fitSummary } from '../kind.ts'
import type { AskDatabase } from './connect.ts'
import type { Question } from './question.ts'
import type { Connections, ServerReader } from './reader.ts'

/** Used connections compared with the limit, by holder and activity. */

const limitSql = `
  select current_setting('max_connections')::int as max_connections,
    current_setting('superuser_reserved_connections')::int as reserved,
    count(*) filter (where backend_type = 'client backend')::int as used
  from pg_stat_activity`

const holdersSql = `
  select usename as user, datname as database, application_name as application, host(client_addr) as from,
    coalesce(state, 'unknown') as state, count(*)::int as count,
    ${toTimeSql('min(state_change)')} as oldest
  from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
  group by 1, 2, 3, 4, 5 order by count(*) desc limit 100`

export async function readConnections(ask: AskDatabase): Promise<Connections> {
  const { rows } = await ask({ sql: limitSql })
  const holders = (await ask({ sql: holdersSql })).rows
  const [{ max_connections = 0, reserved = 0, used = 0 } = {}] = rows
  return {
    used: Number(used),
    max: Number(max_connections),
    reserved: Number(reserved),
    holders: holders.map((row) =>
      Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== '')),
    ),
  }
}

export const askConnections = (read: ServerReader['readConnections']): Question => ({
  name: 'connections',
  asks: 'used of the limit, by whom',
  async read(ask) {
    const { holders, ...limits } = await read(ask)
    return {
      summary: fitSummary(holders, (kept, omitted) => ({
        ...limits,
        holders: kept,
        ...(omitted > 0 && { moreHolders: omitted }),
      })),
      whole: holders.map((each) => JSON.stringify(each)).join('\n'),
      isEmpty: false,
    }
  },
  say: ({ used, max, holders }) => {
    const [first] = (holders ?? []) as { count: number; user?: string; application?: string; state: string }[]
    const most = first ? `; most by ${first.application ?? first.user} (${first.count}, ${first.state})` : ''
    return `${used} of ${max} connections in use${most}`
  },
})

export const connections: Question = askConnections(readConnections)
