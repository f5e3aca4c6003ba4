import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { readAuthorities, readRef } from '../../config/references.ts'
import { readVariables } from '../../config/variables.ts'
import { type CredentialHider, hideCredentials } from '../../domain/hidden-credentials.ts'
import type { JobOutcome } from '../../domain/job.ts'
import { cleanse } from '../../safety/redact.ts'

type Command = {
  argv: readonly string[]
  cwd: string | undefined
  /** Variables of the program, in addition to those of `passedOn`. */
  env: Record<string, string>
  timeoutMs: number
}

/** Bytes that are kept of a long output, at its beginning and its end. */
const headBytes = 16_000
const tailBytes = 48_000
/** Milliseconds between the signal that asks a program to end and the one that kills it. */
const graceMs = 3_000
/** Milliseconds after the end of a program in which its pipes are still read. */
const drainMs = 250

/**
 * Variables that any program gets. No other variable of this process is passed on, because the
 * variables hold secrets.
 */
const passedOn = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']

/**
 * Process groups that run now. The groups are killed when this process, which watches their
 * deadlines, exits.
 */
const groups = new Set<number>()
let watching = false

/**
 * Runs a program without a shell, in a process group, with a time limit. The whole group is ended
 * at the time limit, and also when the program ends. Never throws: a failed start is an outcome.
 */
export async function runCommand({ argv, cwd, env, timeoutMs }: Command): Promise<JobOutcome> {
  const [program = '', ...args] = argv
  const child = spawn(program, args, {
    cwd,
    env: { ...readVariables(...passedOn), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid !== undefined) keepWatch(pid)
  const output = boundedOutput()
  child.stdout.on('data', output.add)
  child.stderr.on('data', output.add)

  let isLate = false
  const deadline = setTimeout(() => {
    isLate = true
    signalGroup(pid, 'SIGTERM')
    setTimeout(() => signalGroup(pid, 'SIGKILL'), graceMs).unref()
  }, timeoutMs)
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const ended = await new Promise<{ code: number | null; signal: string | null; error?: NodeJS.ErrnoException }>(
    (resolve) => {
      child.once('error', (error) => resolve({ code: null, signal: null, error }))
      child.once('exit', (code, signal) => resolve({ code, signal }))
    },
  )
  clearTimeout(deadline)
  signalGroup(pid, 'SIGKILL')
  await Promise.race([closed, sleep(drainMs)])
  child.stdout.destroy()
  child.stderr.destroy()
  if (pid !== undefined) groups.delete(pid)
  return { isOk: ended.code === 0 && !isLate, exitCode: isLate ? null : ended.code, ...output.kept(), detail: say() }

  function say(): string {
    const seconds = Math.round(timeoutMs / 1000)
    if (ended.error) return `${program} could not be started (${ended.error.code ?? 'unknown'})`
    if (isLate) return `${program} was stopped at its deadline of ${seconds} s: changes that it made before remain`
    return ended.code === null ? `${program} was ended by ${ended.signal}` : `${program} ended with code ${ended.code}`
  }
}

function boundedOutput() {
  let head = Buffer.alloc(0)
  let tail = Buffer.alloc(0)
  let isCut = false
  return {
    add(chunk: Buffer) {
      const toHead = chunk.subarray(0, headBytes - head.length)
      head = Buffer.concat([head, toHead])
      tail = Buffer.concat([tail, chunk.subarray(toHead.length)])
      if (tail.length <= tailBytes) return
      isCut = true
      tail = tail.subarray(-tailBytes)
    },
    kept() {
      const between = isCut ? '\n… left out …\n' : ''
      const text = isCut ? `${head}${between}${tail}` : Buffer.concat([head, tail]).toString('utf8')
      return { output: stripVTControlCharacters(text).replace(/\r\n?/g, '\n'), isCut }
    },
  }
}

function signalGroup(pid: number | undefined, signal: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, signal)
  } catch {
    // Ignores the error, because no process of the group is left.
  }
}

function keepWatch(pid: number): void {
  groups.add(pid)
  if (watching) return
  watching = true
  process.once('exit', () => {
    for (const group of groups) signalGroup(group, 'SIGKILL')
  })
}

type Value = string | { from: string; prefix: string }

/**
 * Credentials of a job's step, read when the step begins. The credentials are sent only to the
 * systems to which they belong.
 */
export type Credentials = {
  read(ref: string): string
  fill(values: Record<string, Value>): Record<string, string>
  /** Hides the credentials in a system's answer. */
  hide: CredentialHider
  /** Removes the credentials from a text, and also everything that looks like a secret. */
  cleanse(text: string): string
}

export function openCredentials(): Credentials {
  const known = new Set<string>()
  let hider = hideCredentials([])
  const read = (ref: string): string => {
    const secret = readRef(ref)
    hider = hideCredentials([...known.add(secret)])
    return secret
  }
  // Calls the current hider, because more credentials may be read after this object is in use.
  const hide: CredentialHider = { text: (text) => hider.text(text), value: (value) => hider.value(value) }
  return {
    hide,
    read,
    fill: (values) =>
      Object.fromEntries(
        Object.entries(values).map(([name, value]) => [
          name,
          typeof value === 'string' ? value : `${value.prefix}${read(value.from)}`,
        ]),
      ),
    cleanse: (text) => cleanse(hide.text(text)),
  }
}

/** Reads the PEM of authorities, which is not secret. */
export function readCa(file: string | undefined): { ca: string } | null {
  return file === undefined ? null : { ca: readAuthorities(file) }
}
