import { constants } from 'node:os'
import { type Running, type StartOptions, startEverything } from './everything.ts'
import type { PartEvent, Report } from './parts.ts'
import { lastError } from './process.ts'

interface Screen {
  write(text: string): unknown
  isTTY?: boolean
  columns?: number
}

function endOf({ exit, restartInMs }: Extract<PartEvent, { kind: 'exited' }>): string {
  const said = `ended with code ${exit.code}`
  if (restartInMs !== null) {
    const why = lastError(exit.tail)
    return `${said}${why === null ? '' : `: ${why}`}; it is started again in ${restartInMs / 1000} s`
  }
  return `${said}, too often to be started again: stop everything with Ctrl-C and start afresh. Its log ends with:\n${exit.tail}`
}

/** Writes what happens during a start for a person: a line per part with its time; on a terminal also one that moves. */
export function terminalReport(screen: Screen): Report {
  const inProgress = new Map<string, string>()
  const lastSaid = new Map<string, number>()
  const mark = screen.isTTY ? { done: '\x1b[32m✔\x1b[0m', wrong: '\x1b[31m✘\x1b[0m' } : { done: 'ok', wrong: '!!' }

  const line = (text: string) => screen.write(`${screen.isTTY ? '\r\x1b[2K' : ''}${text}\n`)
  const moving = () => {
    if (!screen.isTTY) return
    const text = [...inProgress].map(([part, doing]) => `${part} ${doing}`).join(', ')
    screen.write(`\r\x1b[2K${text === '' ? '' : `… ${text}`.slice(0, (screen.columns || 80) - 1)}`)
  }

  return (event: PartEvent) => {
    switch (event.kind) {
      case 'starting':
        inProgress.set(event.part, 'is starting')
        break
      case 'progress': {
        inProgress.set(event.part, `is ${event.text}`)
        // A log gets the first word of it and then a sign of life.
        const silentMs = Date.now() - (lastSaid.get(event.part) ?? 0)
        if (!screen.isTTY && silentMs > 10_000) {
          lastSaid.set(event.part, Date.now())
          line(`.. ${event.part.padEnd(11)} ${event.text}`)
        }
        break
      }
      case 'ready':
        inProgress.delete(event.part)
        line(`${mark.done} ${event.part.padEnd(11)} ${event.result}  ${(event.durationMs / 1000).toFixed(1)} s`)
        break
      case 'replaced':
        line(`${mark.done} ${event.part.padEnd(11)} ${event.result}  (not ours, from the environment)`)
        break
      case 'failed':
        inProgress.delete(event.part)
        // The error itself ends the start, which prints it.
        line(`${mark.wrong} ${event.part.padEnd(11)} did not start`)
        break
      case 'exited':
        line(`${mark.wrong} ${event.part.padEnd(11)} ${endOf(event)}`)
        break
      case 'restarted':
        line(`${mark.done} ${event.part.padEnd(11)} runs again`)
        break
      case 'tidied':
        line(`.. stopped what an earlier start had left behind: ${event.names.join(', ')}`)
        break
    }
    moving()
  }
}

/**
 * Starts everything and keeps it running until SIGINT, SIGTERM or SIGHUP, then stops it and answers the exit code. A second
 * signal kills what is left at once. `whenReady` gets the running system and a signal that is aborted when it is to stop;
 * if it throws, everything is stopped and the error goes on.
 */
export async function runInForeground(
  options: Omit<StartOptions, 'signal'>,
  report: Report,
  whenReady?: (running: Running, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const stopped = new AbortController()
  let running: Running | undefined
  let code = 0
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopped.signal.aborted) {
      // Ending this process kills the children, see startEverything.
      process.exit(128 + constants.signals[signal])
    }
    // Ctrl-C is how one ends it, not a failure.
    code = signal === 'SIGINT' ? 0 : 128 + constants.signals[signal]
    stopped.abort()
  }
  const signals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, onSignal)
  // The children do not hold this process; without them something else must.
  const alive = setInterval(() => undefined, 60_000)
  try {
    running = await startEverything({ ...options, signal: stopped.signal }, report)
    const untilStopped = new Promise<void>((resolve) => {
      if (stopped.signal.aborted) resolve()
      stopped.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const follow = whenReady?.(running, stopped.signal)
    await Promise.race([untilStopped, (follow ?? Promise.resolve()).then(() => untilStopped)])
    return code
  } catch (error) {
    if (stopped.signal.aborted) return code
    throw error
  } finally {
    await running?.stop()
    clearInterval(alive)
    for (const signal of signals) process.off(signal, onSignal)
  }
}
