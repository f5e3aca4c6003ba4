import pg from 'pg'

/** A statement that takes longer than this makes its client ask the server about it. */
const patientMs = 2_500
/** A living server answers a new connection within this, however busy it is. */
const answersWithinMs = 1_500
/** An answer that is on its way arrives within this. */
const arrivesWithinMs = 1_000
/** Longest wait for a statement of which the server tells nothing: above its own limit of 20 s. */
const untoldLimitMs = 25_000

/**
 * Reason to give a connection up: its server said nothing, knew no work of it, or told nothing too
 * long.
 */
export type GiveUpReason = 'server_silent' | 'not_at_work' | 'nothing_told'

/** The server's word on its backends, by pid. A null state: this login may not see it. */
type ServerWord = 'silent' | 'untold' | ReadonlyMap<number, string | null>

/**
 * Tells a slow statement from one whose answer will never come. The server's limits end a slow one.
 * A stopped server, or a machine that is gone, ends nothing; after a firewall or failover dropped
 * the connection, the server lives and knows no such statement. A long statement makes one new
 * connection: if the server does not answer it, or says twice that the backend does not work, the
 * connection is destroyed and the statement fails as one whose connection broke. It is never used
 * again: what its transaction did is unknown.
 */
export function giveUpSilent(connectionString: string): {
  /** Called once for each new connection, with the pid of its backend. */
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

/** The types of `pg` hide the socket, which alone can be given up without the server's help. */
function streamOf(client: pg.ClientBase): { destroy(): void } | undefined {
  return (client as unknown as { connection?: { stream?: { destroy(): void } } }).connection?.stream
}

/**
 * Asks the server on a new connection. A refusal tells nothing, and so does a pooler that lets us
 * in and no further.
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

/** An SQLSTATE can only come from a server. */
function isAnswer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(String((error as { code?: unknown }).code))
}
