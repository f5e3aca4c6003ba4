import pg from 'pg'

/**
 * Milliseconds for the first statement of a connection. A server that does not respond in time
 * counts as unavailable.
 */
const answersWithinMs = 1_500
/** Milliseconds after which a pooler is checked again, because its settings may change. */
const askAgainMs = 60_000

const settings = {
  // Sets the format of values, whatever formats the database and role are configured to use.
  timezone: 'UTC',
  datestyle: 'ISO',
  intervalstyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  // Lets a statement see what other transactions committed before it. Decisions are made under the
  // locks that the statement holds.
  default_transaction_isolation: 'read committed',
  // Limits the time of statements. They take milliseconds, and a statement that hangs holds a lock
  // for which investigations wait.
  statement_timeout: '20s',
  idle_in_transaction_session_timeout: '20s',
}

/** Thrown if a connection to the database cannot be used. The message contains the remedy. */
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
  'A pooler in front of the database gives each transaction another session, so role, clock, LISTEN and locks are lost. Use session pooling, or connect without a pooler',
  'Set pool_mode = session for this database in PgBouncer, or point DATABASE_URL at PostgreSQL itself',
] as const

/**
 * Returns a function that prepares a new connection before any query: sets the role of the
 * services, which can append to the log but not change the log (`isOwner` keeps the role of the
 * login), the format of values, and the limits. One statement sets them all, because a pooler
 * refuses or drops settings in the startup packet. The function returns the pid of the backend,
 * which behind a pooler differs from the announced pid. It throws `SessionRefusedError` if a pooler
 * gives each transaction another session.
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
 * Whether the client keeps its session while a second client is in a transaction. A pooler in
 * transaction mode gives the session that was released last to the next transaction, so the first
 * client would get another session.
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
