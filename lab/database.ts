import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { startPostgres } from '../start/postgres.ts'
import type { Lab } from './state.ts'

/** A real PostgreSQL with few connections, which web nodes use, and an exporter of its metrics. */
export type LabDatabase = {
  url: string
  exporterPort: number
  /**
   * Counts the connections of a program by the program's name. Opens no connection, because a full
   * server has no free one.
   */
  countHeld(name: string): Promise<number>
  stop(): Promise<void>
}

/** The most connections of the server. `largestPool`: the most of a web node's pool. */
const maxConnections = 20
export const largestPool = 4

/** Returns the node under whose address the server is known, which is the first primary. */
export const databaseNode = ({ topology }: Lab): string =>
  topology.nodes.find(({ role }) => role === 'primary')?.id ?? ''

export async function startDatabase(lab: Lab): Promise<LabDatabase> {
  const server = await startPostgres({ dir: join(lab.dir, 'postgres'), durable: false, maxConnections })
  const client = new pg.Client({ connectionString: server.url, application_name: 'exporter' })
  client.on('error', () => undefined)
  await client.connect()
  const exporter = createServer(async (_, response) => {
    const text = await describe(client).catch(() => null)
    response.writeHead(text === null ? 503 : 200, { 'content-type': 'text/plain; version=0.0.4' })
    response.end(text ?? 'the server does not answer\n')
  })
  await new Promise<void>((resolve) => exporter.listen(0, '127.0.0.1', resolve))
  return {
    url: server.url,
    exporterPort: (exporter.address() as AddressInfo).port,
    async countHeld(name) {
      const { rows } = await client.query<{ count: string }>(
        'select count(*) as count from pg_stat_activity where application_name = $1',
        [name],
      )
      return Number(rows[0]?.count ?? 0)
    },
    async stop() {
      exporter.closeAllConnections()
      exporter.close()
      await client.end().catch(() => undefined)
      await server.stop(0)
    },
  }
}

/** Formats numbers of connections by program and state, with the names of postgres_exporter. */
async function describe(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ application_name: string; state: string; count: string }>(
    `select application_name, coalesce(state, 'unknown') as state, count(*) as count from pg_stat_activity
     where backend_type = 'client backend' group by 1, 2`,
  )
  const counts = rows.map(
    ({ application_name, state, count }) =>
      `pg_stat_activity_count{application_name=${JSON.stringify(application_name)},state=${JSON.stringify(state)}} ${count}`,
  )
  return [
    '# TYPE pg_stat_activity_count gauge',
    ...counts,
    '# TYPE pg_settings_max_connections gauge',
    `pg_settings_max_connections ${maxConnections}`,
    '',
  ].join('\n')
}

/** Counts a node's connections at the server; 0 if no server runs. */
export const heldConnections = async ({ database }: Lab, node: string): Promise<number> =>
  (await database?.countHeld(node)) ?? 0
