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
  /** Besides what every program needs. */
  env: Record<string, string>
  timeoutMs: number
}

/** A long output keeps its beginning and end. */
const headBytes = 16_000
const tailBytes = 48_000
/** Time from being asked to end until it is killed. */
const graceMs = 3_000
/** What a program leaves in its pipes is there right after it ended. */
const drainMs = 250

/** What any program needs. Nothing else of this process goes along: it knows secrets. */
const passedOn = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR']

/** Groups that run now, so that none outlives this process: nobody would watch its deadline. */
const groups = new Set<number>()
let watching = false

/**
 * Runs a program without a shell, in a process group, within its time. The deadline ends the whole
 * group; what the program leaves goes too. Never throws: a failed start is an outcome.
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
    if (isLate) return `${program} was stopped at its deadline of ${seconds} s: what it had done by then stays`
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
    // None of it is left.
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

/** Credentials of a job's step, read as it begins. They leave only to where they belong. */
export type Credentials = {
  read(ref: string): string
  fill(values: Record<string, Value>): Record<string, string>
  /** What a system answered, without any of them. */
  hide: CredentialHider
  /** A text without any of them, and without whatever else looks like a secret. */
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
  // More may be read after this was handed on.
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

/** PEM of authorities; it is no secret. */
export function readCa(file: string | undefined): { ca: string } | null {
  return file === undefined ? null : { ca: readAuthorities(file) }
}
