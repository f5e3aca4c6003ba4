import pg from 'pg'

/** A statement that takes longer than this makes its client ask whether the server is alive. */
const patientMs = 2_500
/** A living server answers a new connection within this, however busy it is with other statements. */
const answersWithinMs = 1_500

type Pulse = {
  /** Gives up a connection whose server is frozen. Called once for each new connection of a pool. */
  watch(client: pg.PoolClient): void
}

/**
 * Tells a slow statement from a frozen server. The server's own limits end what is slow; a server that is stopped, or whose machine is
 * gone, ends nothing, and a connection to it says nothing either. So a statement that takes long makes one new connection: where that is
 * answered, by a refusal too, the statement is left alone, and is asked about again. Where it is not, the connection is destroyed and
 * the statement fails as one whose connection broke. A connection is never used again after that: what its transaction did is unknown.
 */
export function pulseOf(connectionString: string): Pulse {
  let asking: Promise<boolean> | null = null
  const isAlive = () => {
    asking ??= answers(connectionString).finally(() => {
      asking = null
    })
    return asking
  }
  return {
    watch(client) {
      const query = client.query.bind(client) as (...args: unknown[]) => unknown
      Object.assign(client, {
        query(...args: unknown[]) {
          const asked = query(...args)
          if (asked instanceof Promise) watchOver(asked, client, isAlive)
          return asked
        },
      })
    },
  }
}

function watchOver(asked: Promise<unknown>, client: pg.PoolClient, isAlive: () => Promise<boolean>): void {
  let isOver = false
  const look = async () => {
    const alive = await isAlive()
    if (isOver) return
    if (alive) timer = setTimeout(look, patientMs)
    else streamOf(client)?.destroy()
  }
  let timer = setTimeout(look, patientMs)
  const over = () => {
    isOver = true
    clearTimeout(timer)
  }
  asked.then(over, over)
}

/** The types of `pg` hide the socket, which alone can be given up without the server's help. */
function streamOf(client: pg.PoolClient): { destroy(): void } | undefined {
  return (client as unknown as { connection?: { stream?: { destroy(): void } } }).connection?.stream
}

/** Does the server answer a new connection in time? A refusal is an answer. */
async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, application_name: 'nightshift-pulse' })
  client.on('error', () => {})
  let timer: NodeJS.Timeout | undefined
  const silence = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), answersWithinMs)
  })
  try {
    return await Promise.race([client.connect().then(() => true, isAnswer), silence])
  } finally {
    clearTimeout(timer)
    streamOf(client as unknown as pg.PoolClient)?.destroy()
  }
}

/** An SQLSTATE can only come from a server. */
function isAnswer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(String((error as { code?: unknown }).code))
}
