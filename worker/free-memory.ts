import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/**
 * Rare enough to cost nothing, frequent enough to forget a burst before the next look at a graph.
 */
const everyMs = 15_000

/** Less of a core than this is idle: polls, the outbox, a stray decision. */
const idleShare = 0.1

/**
 * Beyond this it does not wait for quiet: V8 lets a storm's garbage grow for minutes before it
 * looks. A look takes about 0.2 s.
 */
const pressureMegabytes = 320

/** Less work than this since the last time leaves too little behind to be worth a pause. */
const worthSeconds = 2

// The types of Node know no domain but the main thread's.
type Untyped = {
  post(method: string, params?: object): Promise<unknown>
  on(event: string, listener: (message: { params: { sessionId: string } }) => void): void
}

/**
 * Collects every thread's garbage and gives the pages back. V8 sizes heaps for the busiest minute
 * and gives nothing back while nothing happens; and workflows run in a thread whose heap only the
 * inspector reaches. The session is in this process: no port is opened.
 */
export async function freeMemory(): Promise<void> {
  const session = new Session()
  session.connect()
  const { post, on } = { post: session.post.bind(session), on: session.on.bind(session) } as unknown as Untyped
  try {
    await post('HeapProfiler.collectGarbage')
    const threads: string[] = []
    let answers = 0
    on('NodeWorker.attachedToWorker', ({ params }) => void threads.push(params.sessionId))
    for (const event of ['NodeWorker.receivedMessageFromWorker', 'NodeWorker.detachedFromWorker'])
      on(event, () => {
        answers += 1
      })
    await post('NodeWorker.enable', { waitForDebuggerOnStart: false })
    const message = JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' })
    for (const sessionId of threads) await post('NodeWorker.sendMessageToWorker', { sessionId, message })
    // An earlier disconnect takes the question back. A thread that does not come to it within
    // seconds is not idle.
    for (let tries = 0; answers < threads.length && tries < 100; tries += 1) await sleep(50)
  } finally {
    session.disconnect()
  }
}

/**
 * Gives memory back whenever quiet follows work, and in the middle of it where much is taken.
 * Answers how to stop.
 */
export function freeMemoryWhenIdle(log: Logger): () => void {
  let before = process.cpuUsage()
  let workedSeconds = 0
  let busy = false
  const timer = setInterval(async () => {
    const { user, system } = process.cpuUsage(before)
    before = process.cpuUsage()
    const seconds = (user + system) / 1_000_000
    workedSeconds += seconds
    const isPressed = process.memoryUsage.rss() >> 20 > pressureMegabytes
    if (busy || workedSeconds < worthSeconds || (!isPressed && seconds > (everyMs / 1000) * idleShare)) return
    busy = true
    await freeMemory().catch((error) => log.debug({ err: error }, 'memory was not given back'))
    // What collecting took is no work that leaves garbage.
    before = process.cpuUsage()
    workedSeconds = 0
    busy = false
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
