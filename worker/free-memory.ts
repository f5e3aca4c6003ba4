import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'

/**
 * Milliseconds between checks. A check costs little, and memory may stay in use this long after
 * work.
 */
const everyMs = 15_000

/**
 * Share of a core below which the process is idle. Polls, the outbox and a single decision use
 * less.
 */
const idleShare = 0.1

/**
 * Resident megabytes from which memory is freed even during work, because V8 lets garbage grow for
 * minutes during a storm of alerts. Freeing takes about 0.2 s.
 */
const pressureMegabytes = 320

/** Seconds of CPU time since the last collection from which the garbage justifies a pause. */
const worthSeconds = 2

// Replaces Node's types of `Session`, which know only the domains of the main thread.
type Untyped = {
  post(method: string, params?: object): Promise<unknown>
  on(event: string, listener: (message: { params: { sessionId: string } }) => void): void
}

/**
 * Collects every thread's garbage and returns the memory to the system. V8 sizes heaps for the
 * busiest minute and returns no memory while idle. Workflows run in a thread whose heap only the
 * inspector reaches. The inspector session is within this process and opens no port.
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
    // Waits for all threads to answer, because a disconnect would cancel the request. A thread that
    // does not answer within 5 seconds is not idle.
    for (let tries = 0; answers < threads.length && tries < 100; tries += 1) await sleep(50)
  } finally {
    session.disconnect()
  }
}

/**
 * Frees memory when the process becomes idle after work, and during work if much memory is used.
 * Returns a function that stops the checks.
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
    await freeMemory().catch((error) => log.debug({ err: error }, 'free memory could not be returned to the system'))
    // Does not count the CPU time of the collection as work, because it leaves no garbage.
    before = process.cpuUsage()
    workedSeconds = 0
    busy = false
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}
