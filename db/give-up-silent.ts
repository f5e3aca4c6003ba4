import pg from 'pg'

/** Milliseconds after which the client asks the server whether its statement is still running. */
const patientMs = 2_500
/** Milliseconds within which a running server responds to a new connection, however busy it is. */
const answersWithinMs = 1_500
/** Milliseconds within which a response that the server has already sent arrives. */
const arrivesWithinMs = 1_000
/**
 * Maximum milliseconds to wait for a statement if the server reports nothing. Longer than the
 * server's own limit of 20 s.
 */
const untoldLimitMs = 25_000

/**
 * Why a connection was given up: the server was silent, did not run the statement, or reported
 * nothing for too long.
 */
export type GiveUpReason = 'server_silent' | 'not_at_work' | 'nothing_told'

/**
 * The server's report about its backends, by pid. A null state means that this login may not see
 * the backend's state.
 */
type ServerWord = 'silent' | 'untold' | ReadonlyMap<number, string | null>

/**
 * Gives up a statement that will never be answered, but not a slow one, which the limits of the
 * server end. Nothing ends a statement if the server stopped or its machine was lost. If a firewall
 * or failover dropped the connection, the server runs but does not know the statement. After some
 * time, one new connection asks the server about the statement. If the server does not respond, or
 * reports twice that the backend is not working, the old connection is destroyed, and the statement
 * fails as if the connection had broken. The old connection is never used again, because the
 * outcome of its transaction is unknown.
 */
export function giveUpSilent(connectionString: string): {
  /** Watches the statements of a new connection. `pid`: the process of its backend. */
  watch(client: pg.ClientBase, pid: number): void
  counts: Readonly<Record<GiveUpReason, number>>
} {
  const counts = { server_silent: 0, not_at_work: 0, nothing_told: 0 }
  let asking: Promise<ServerWord> | null = null
  const askServer = () => {
    asking ??= backendsOf(connectionString).finally(() => {
      asking = null
    })
    return asking
  }
  return {
    counts,
    watch(client, pid) {
      const giveUp = (reason: GiveUpReason) => {
        counts[reason] += 1
        streamOf(client)?.destroy()
      }
      const query = client.query.bind(client) as (...args: unknown[]) => unknown
      Object.assign(client, {
        query(...args: unknown[]) {
          const asked = query(...args)
          if (asked instanceof Promise) watchStatement(asked, async () => wordOn(await askServer(), pid), giveUp)
          return asked
        },
      })
    },
  }
}

type Word = 'silent' | 'untold' | 'at_work' | 'not_at_work'

function wordOn(said: ServerWord, pid: number): Word {
  if (typeof said === 'string') return said
  const state = said.get(pid)
  if (state === null) return 'untold'
  return state === 'active' ? 'at_work' : 'not_at_work'
}

function watchStatement(
  asked: Promise<unknown>,
  askServer: () => Promise<Word>,
  giveUp: (reason: GiveUpReason) => void,
): void {
  let isOver = false
  let isDoubted = false
  const beganMs = performance.now()
  const look = async () => {
    const word = await askServer()
    if (isOver) return
    if (word === 'silent') return giveUp('server_silent')
    if (word === 'not_at_work' && isDoubted) return giveUp('not_at_work')
    if (word === 'untold' && performance.now() - beganMs > untoldLimitMs) return giveUp('nothing_told')
    isDoubted = word === 'not_at_work'
    timer = setTimeout(look, isDoubted ? arrivesWithinMs : patientMs)
  }
  let timer = setTimeout(look, patientMs)
  const over = () => {
    isOver = true
    clearTimeout(timer)
  }
  asked.then(over, over)
}

/**
 * Returns the client's socket, which the types of `pg` hide. Only the socket can be closed without
 * the help of the server.
 */
function streamOf(client: pg.ClientBase): { destroy(): void } | undefined {
  return (client as unknown as { connection?: { stream?: { destroy(): void } } }).connection?.stream
}

/**
 * Asks the server about its backends through a new connection. A refused connection shows nothing,
 * and neither does a pooler without a server.
 */
async function backendsOf(connectionString: string): Promise<ServerWord> {
  const client = new pg.Client({ connectionString, application_name: 'nightshift-pulse' })
  client.on('error', () => {})
  let timer: NodeJS.Timeout | undefined
  let isIn = false
  const silence = new Promise<ServerWord>((resolve) => {
    timer = setTimeout(() => resolve(isIn ? 'untold' : 'silent'), answersWithinMs)
  })
  const ask = async (): Promise<ServerWord> => {
    try {
      await client.connect()
      isIn = true
      const { rows } = await client.query<{ pid: number; state: string | null }>(
        'select pid, state from pg_stat_activity where datname = current_database()',
      )
      return new Map(rows.map(({ pid, state }) => [pid, state]))
    } catch (error) {
      return isIn || isAnswer(error) ? 'untold' : 'silent'
    }
  }
  try {
    return await Promise.race([ask(), silence])
  } finally {
    clearTimeout(timer)
    streamOf(client)?.destroy()
  }
}

/** Whether the server itself responded: only a server sends an SQLSTATE. */
function isAnswer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(String((error as { code?: unknown }).code))
}
