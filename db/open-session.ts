import pg from 'pg'

/** The server answers the first statement of a connection within this, or is as good as away. */
const answersWithinMs = 1_500
/** A pooler that keeps its sessions is asked again after this: its settings may change. */
const askAgainMs = 60_000

const settings = {
  // How values are written, whatever database and role are set to.
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  // A statement sees what others committed before it, and decides under the locks it holds.
  default_transaction_isolation: 'read committed',
  // Statements of ours take milliseconds: one that hangs holds a lock that investigations wait for.
  statement_timeout: '20s',
  idle_in_transaction_session_timeout: '20s',
}

/** Thrown where a connection cannot be ours. Its message says what to do. */
export class SessionRefusedError extends Error {
  override name = 'SessionRefusedError' as const
  readonly what: string
  readonly remedy: string
  constructor(what: string, remedy: string) {
    super(`${what}. ${remedy}`)
    this.what = what
    this.remedy = remedy
  }
}

const notKept = [
  'A pooler in front of the database gives each transaction another session: role, clock, LISTEN and locks are lost between two statements',
  'Set pool_mode = session for this database in PgBouncer, or let DATABASE_URL lead to PostgreSQL itself',
] as const

/**
 * Makes new connections to this address ours before anything is asked on them: the services' role,
 * which may append to the log and nothing more (`isOwner` keeps the login's), the style of values,
 * the limits. One statement does it, since a pooler refuses or drops what stands in the opening
 * packet. Answers the backend's pid, which behind a pooler is not what the connection was told.
 * Throws `SessionRefusedError` where a pooler gives each transaction another session.
 */
export function sessionOpener(connectionString: string, isOwner: boolean): (client: pg.ClientBase) => Promise<number> {
  const wanted = Object.entries(isOwner ? settings : { ...settings, role: 'nightshift_app' })
  const text = `select pg_backend_pid() as pid, ${wanted.map((_, at) => `set_config($${2 * at + 1}, $${2 * at + 2}, false)`).join(', ')}`
  let askedAtMs = Number.NEGATIVE_INFINITY
  return async (client) => {
    const pid = await pidOf(client, text, wanted.flat())
    const { processID } = client as unknown as { processID: number }
    if (pid !== processID && performance.now() - askedAtMs > askAgainMs) {
      if (!(await keepsSession(client, pid, connectionString))) throw new SessionRefusedError(...notKept)
      askedAtMs = performance.now()
    }
    return pid
  }
}

async function pidOf(client: pg.ClientBase, text = 'select pg_backend_pid() as pid', values: string[] = []) {
  const query = { text, values, query_timeout: answersWithinMs } as pg.QueryConfig
  const { rows } = await client.query<{ pid: number }>(query)
  return rows[0]?.pid ?? 0
}

/**
 * Whether the session stays the client's while another client is in a transaction. A pooler by
 * transaction hands the last session let go of to the next transaction, and this client another
 * one.
 */
async function keepsSession(client: pg.ClientBase, pid: number, connectionString: string): Promise<boolean> {
  const other = new pg.Client({ connectionString, application_name: 'nightshift-session' })
  other.on('error', () => {})
  try {
    await other.connect()
    await other.query({ text: 'begin', query_timeout: answersWithinMs } as pg.QueryConfig)
    return (await pidOf(other)) !== pid && (await pidOf(client)) === pid
  } finally {
    await other.end().catch(() => {})
  }
}
