import type { Lab } from '../state.ts'
import { type DatabaseDrawer, serverNamed } from './drawer.ts'
import type { DatabaseName } from './faults.ts'
import { askMariadb } from './mariadb.ts'
import { runSql } from './postgresql.ts'
import type { ShopSession } from './session.ts'

const query = `select pid, backend_start::text as started, application_name as application, state,
  coalesce(query_start::text, '') as query_started
  from pg_stat_activity where backend_type = 'client backend' and usename = 'shop_app' order by backend_start, pid`

type SessionNow = ShopSession & { state: string | null; queryStartedAt: string }

/** Reads the shop's sessions on both PostgreSQL servers. */
export async function readSessions(
  drawer: DatabaseDrawer,
  names: DatabaseName[] = ['pg-1', 'pg-2'],
): Promise<SessionNow[]> {
  const all = await Promise.all(
    names.map(async (server) => {
      const rows = await runSql<Row>(serverNamed(drawer, server), drawer.secrets, [query])
      return rows.map(({ pid, started, application, state, query_started }) => ({
        server,
        pid,
        startedAt: started,
        application,
        state,
        queryStartedAt: query_started,
      }))
    }),
  )
  return all.flat()
}
type Row = { pid: number; started: string; application: string; state: string | null; query_started: string }

/**
 * Reads the shop's connection to MariaDB. The id alone identifies it, because the server never
 * reuses an id.
 */
export async function readMariadbSessions(drawer: DatabaseDrawer): Promise<ShopSession[]> {
  const rows = await askMariadb(serverNamed(drawer, 'maria-1'), drawer.secrets, [
    `select id from information_schema.processlist where user = 'shop_app'`,
  ])
  return rows.map(({ id }) => ({ server: 'maria-1', pid: Number(id), startedAt: '', application: 'shop-maria' }))
}

/** Returns the databases of a lab; throws if they do not run. */
export function drawerOf({ drawer }: Lab): DatabaseDrawer {
  if (!drawer) throw new Error('the databases of the lab do not run')
  return drawer
}
