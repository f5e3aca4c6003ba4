import type pg from 'pg'

/** The server answers the first statement of a connection within this, or is as good as away. */
const answersWithinMs = 1_500

const settings = {
  // How values are written, whatever database and role are set to.
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  // A statement of ours takes milliseconds: one that hangs holds a lock that investigations wait for.
  statement_timeout: '20s',
  idle_in_transaction_session_timeout: '20s',
}

/**
 * Makes a new connection ours, before anything is asked on it: the services' role, which may append to the log and nothing more (`isOwner`
 * keeps the login's own), the style of values and the limits. One statement does it, because a pooler refuses or drops what stands in the packet that
 * opens a connection. Answers the pid of the backend, which behind a pooler is not what the connection was told.
 */
export async function openSession(client: pg.ClientBase, isOwner: boolean): Promise<number> {
  const wanted = Object.entries(isOwner ? settings : { ...settings, role: 'nightshift_app' })
  const set = wanted.map((_, at) => `set_config($${2 * at + 1}, $${2 * at + 2}, false)`)
  const { rows } = await client.query<{ pid: number }>({
    text: `select pg_backend_pid() as pid, ${set.join(', ')}`,
    values: wanted.flat(),
    query_timeout: answersWithinMs,
  } as pg.QueryConfig)
  return rows[0]?.pid ?? 0
}
