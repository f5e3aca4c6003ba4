import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { constants } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { nonceHeader } from '../domain/start-nonce.ts'
import { groupMembers, type Ledger, sendSignal } from './process-table.ts'

const givenOut = new Set<number>()

/**
 * The lowest port to choose at random. All ports up to `highest` are below the system's own range
 * (Linux: from 32768), where any connection may take a port.
 */
const lowest = 10_240
const highest = 32_000

/**
 * Finds a free port of 127.0.0.1 that this process was not given before. Returns the first free
 * port from `from` on, or any free port without `from`. Another program may take the port before
 * the caller uses it, so callers should try again if they can.
 */
export async function freePort(from?: number): Promise<number> {
  if (from === undefined) {
    for (;;) {
      const port = lowest + Math.floor(Math.random() * (highest - lowest))
      if (!givenOut.has(port) && (await listenOnce(port)) !== undefined) return give(port)
    }
  }
  for (let port = from; port < Math.min(from + 200, 65_536); port++) {
    if (!givenOut.has(port) && (await listenOnce(port)) !== undefined) return give(port)
  }
  throw new Error(
    `Ports ${from} to ${from + 199} of 127.0.0.1 are all in use. Free one of these ports, or choose another range.`,
  )
}

/** Returns whether nothing listens on this port of 127.0.0.1 or of all addresses. */
export async function isFree(port: number): Promise<boolean> {
  return (await listenOnce(port)) !== undefined
}

/**
 * Returns whether a program accepts connections on this port of 127.0.0.1. Unlike `isFree`, does
 * not listen on the port itself.
 */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

/** Makes `freePort` offer this port again. */
export function releasePort(port: number): void {
  givenOut.delete(port)
}

function give(port: number): number {
  givenOut.add(port)
  return port
}

async function listenOnce(port: number): Promise<number | undefined> {
  const onLoopback = await listen(port, '127.0.0.1')
  if (onLoopback === undefined || port === 0) return onLoopback
  // Checks all addresses too: a server on them may not prevent a second server on 127.0.0.1, which
  // would then hide the first server.
  return listen(port, '0.0.0.0')
}

function listen(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined))
    })
  })
}

interface ProcessOptions {
  /** The name of the process in messages and in the ledger. */
  name: string
  command: string
  args: string[]
  /** The whole environment. The process inherits nothing, so that it knows only its own secrets. */
  env: Record<string, string | undefined>
  cwd?: string
  /** The file to which the process' standard output and error are appended. */
  logFile: string
  ledger?: Ledger | undefined
  /** The user whose rights the process has. Only root can choose another user. */
  account?: { uid: number; gid: number } | undefined
  /**
   * The signal that asks the process to stop. On SIGTERM PostgreSQL, for example, waits for its
   * clients.
   */
  stopSignal?: NodeJS.Signals
  /** Called when the process ends without `stop` or `kill`. */
  onExit?: (exit: Exit) => void
}

export interface Exit {
  name: string
  code: number
  /** The last lines of the process' log. */
  tail: string
}

export interface RunningProcess {
  name: string
  pid: number
  logFile: string
  /** Resolves when the process has ended for any reason. Never rejects. */
  exited: Promise<Exit>
  hasExited(): boolean
  /**
   * Asks the process to stop, then kills it and all its children. Returns when no process of the
   * group is left.
   */
  stop(graceMs?: number): Promise<void>
  /** Kills the process and all its children, at once and synchronously. */
  kill(): void
}

/**
 * Starts a process as the leader of a new process group. Ctrl-C in the terminal does not reach the
 * group, and `stop` reaches all children of the process.
 */
export async function startProcess(options: ProcessOptions): Promise<RunningProcess> {
  const { name, command, args, logFile, ledger, stopSignal = 'SIGTERM' } = options
  mkdirSync(dirname(logFile), { recursive: true })
  if (existsSync(logFile) && statSync(logFile).size > 10e6) renameSync(logFile, `${logFile}.1`)
  // Uses a file instead of a pipe. The child can still write after this process has ended, and its
  // output can be read.
  const log = openSync(logFile, 'a', 0o600)
  writeSync(log, `--- ${new Date().toISOString()} ${name} starts\n`)
  const env = Object.fromEntries(Object.entries(options.env).filter(([, value]) => value !== undefined))
  const child = spawn(command, args, {
    cwd: options.cwd,
    env,
    detached: true,
    stdio: ['ignore', log, log],
    ...options.account,
  })
  closeSync(log)

  let stopping = false
  let ended = false
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = true
      const exit = { name, code: code ?? 128 + (signal ? constants.signals[signal] : 0), tail: logTail(logFile) }
      if (child.pid !== undefined && groupMembers(child.pid).length === 0) ledger?.remove(child.pid)
      if (!stopping) options.onExit?.(exit)
      resolve(exit)
    })
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', (error) => reject(new Error(`${name} did not start: ${error.message}`)))
  })
  const pid = child.pid as number
  try {
    ledger?.add(name, pid)
  } catch (error) {
    // Kills the child if it could not be listed, because no later start would find it.
    sendSignal(-pid, 'SIGKILL')
    throw error
  }
  // Lets this process end before the child. A caller that awaits `exited` has to keep this process
  // alive.
  child.unref()

  const killGroup = () => {
    stopping = true
    sendSignal(-pid, 'SIGKILL')
  }
  return {
    name,
    pid,
    logFile,
    exited,
    hasExited: () => ended,
    kill: killGroup,
    async stop(graceMs = 3_000) {
      stopping = true
      if (!ended) {
        sendSignal(pid, stopSignal)
        const patience = new AbortController()
        await Promise.race([exited, sleep(graceMs, undefined, { signal: patience.signal }).catch(() => undefined)])
        patience.abort()
      }
      killGroup()
      for (let round = 0; groupMembers(pid).length > 0 && round < 80; round++) await sleep(25)
      ledger?.remove(pid)
    },
  }
}

/** The most milliseconds to wait until a process is ready. A slow machine takes minutes. */
const patienceMs = 900_000
const sayEveryMs = 10_000

type Patience = {
  timeoutMs?: number | undefined
  /** Called at intervals with the reason for waiting. */
  progress?: ((text: string) => void) | undefined
  sayEveryMs?: number
}

/**
 * Polls until the process is ready. `whyNotReady` returns null, or the reason why the process is
 * not ready. Throws an error with the last lines of the log if the process ends, or is not ready in
 * time. The caller has to stop a process that is not ready in time.
 */
export async function waitFor(
  child: RunningProcess,
  whyNotReady: (deadlineMs: number) => Promise<string | null>,
  { timeoutMs = patienceMs, progress, sayEveryMs: everyMs = sayEveryMs }: Patience = {},
): Promise<void> {
  const beganMs = Date.now()
  let saidMs = beganMs
  let last = 'no check was made yet'
  while (Date.now() < beganMs + timeoutMs) {
    if (child.hasExited()) throw endedEarly(await child.exited, child.logFile)
    const why = await whyNotReady(beganMs + timeoutMs)
    if (why === null) return
    last = why
    if (Date.now() - saidMs >= everyMs) {
      saidMs = Date.now()
      progress?.(`still starting after ${Math.round((saidMs - beganMs) / 1000)} s (${last})`)
    }
    await sleep(25)
  }
  throw new Error(
    `${child.name} was not ready within ${timeoutMs / 1000} s: ${last}. Its log is ${child.logFile}; the log ends with:\n${logTail(child.logFile)}`,
  )
}

/**
 * Waits until `url` responds with 200, and with the nonce of the process if `nonce` is set. A
 * response of another process on the port does not count.
 */
export function waitUntilReady(
  child: RunningProcess,
  url: string,
  { nonce, ...patience }: Patience & { nonce?: string } = {},
): Promise<void> {
  const whyNotReady = async (deadlineMs: number): Promise<string | null> => {
    try {
      const withinMs = Math.max(1, Math.min(2_000, deadlineMs - Date.now()))
      const response = await fetch(url, { signal: AbortSignal.timeout(withinMs) })
      const body = await response.text()
      if (nonce !== undefined && response.headers.get(nonceHeader) !== nonce) return `another process answers at ${url}`
      return response.status === 200 ? null : `${url} answered ${response.status} ${body.slice(0, 300)}`.trimEnd()
    } catch (error) {
      const cause = (error as Error).cause as { code?: string } | undefined
      return cause?.code === 'ECONNREFUSED' ? `nothing listened at ${url}` : `${url}: ${(error as Error).message}`
    }
  }
  return waitFor(child, whyNotReady, patience)
}

function endedEarly(exit: Exit, logFile: string): Error {
  const why = lastError(exit.tail)
  const text = `${exit.name} ended with code ${exit.code} while starting${why === null ? '' : `: ${why}`}. Its log is ${logFile}; the log ends with:\n${exit.tail}`
  return /\bEADDRINUSE\b/.test(exit.tail) ? new PortTakenError(text) : new Error(text)
}

/** The error that another program took the port after it was chosen. Another port may work. */
export class PortTakenError extends Error {
  override name = 'PortTakenError' as const
}

/**
 * Returns the last error in a log: an error line, or the error or message of a JSON line. Null
 * without an error.
 */
export function lastError(tail: string): string | null {
  for (const line of tail.split('\n').reverse()) {
    const text = line.trim()
    if (text.startsWith('{')) {
      const found = errorOfJson(text)
      if (found !== null) return found
    } else if (/^(?:\w*Error\b|error\b|fatal\b|panic\b|FATAL\b|ERROR\b)/.test(text)) return text.slice(0, 300)
  }
  return null
}

function errorOfJson(line: string): string | null {
  try {
    const { level, msg, err } = JSON.parse(line) as { level?: unknown; msg?: unknown; err?: { message?: unknown } }
    if (typeof level !== 'number' || level < 50) return null
    return (
      [msg, err?.message]
        .filter((each) => typeof each === 'string' && each !== '')
        .join(': ')
        .slice(0, 300) || null
    )
  } catch {
    return null
  }
}

/** Returns the last lines of the log since the last start of the process, indented. */
function logTail(logFile: string, lines = 15): string {
  let text: string
  try {
    text = readFileSync(logFile, 'utf8')
  } catch {
    return '  (no log)'
  }
  const thisRun = text.slice(Math.max(0, text.lastIndexOf('\n--- ') + 1))
  const tail = thisRun.trimEnd().split('\n').slice(1).slice(-lines)
  return tail.length === 0 ? '  (nothing written)' : tail.map((line) => `  ${line.slice(0, 400)}`).join('\n')
}
