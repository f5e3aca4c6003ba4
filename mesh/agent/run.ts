import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import type { Manifest } from '../../domain/mesh.ts'
import { readEnvironment } from '../../safety/command/surroundings.ts'
import { stripText } from '../../safety/redact.ts'
import { groupMembersOf, markerName, terminate } from './agent-processes.ts'
import { CapabilityError, type RunOptions, type RunResult } from './capability.ts'
import { type Confinement, whyNotStarted } from './confine.ts'
import { find, homeOf, search } from './programs.ts'

type Runner = {
  limits: Manifest['limits']
  confinement: Confinement
  /** The mark in the environment of every started program, by which the agent finds it again. */
  marker: string
  signal: AbortSignal
  /** Called with the pid as soon as the program has one. */
  onStart?(pid: number): void
}

/** The PATH of commands. */
export const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** Milliseconds between two sums of the memory of a program's processes. */
const watchMs = 500
/** Milliseconds for which the agent waits for output after the program has ended. */
const drainMs = 200

/** The largest file that a confined program may write: 32 MiB, in blocks of 512 bytes. */
const largestFileBlocks = '65536'

/**
 * A script that sets limits which every shell knows, and keeps a lower existing limit. The program
 * then replaces the shell.
 */
const limited = `ulimit -c 0 2>/dev/null
ulimit -t "$1" 2>/dev/null
ulimit -d "$2" 2>/dev/null
[ "$3" = unlimited ] || ulimit -f "$3" || exit 126
shift 3
exec "$@"`

/** Number of times that a sandbox is made again for one program. */
const maxRepeats = 2

type RunningProgram = ChildProcessByStdio<Writable | null, Readable, Readable>

/**
 * Runs a program in a separate session and environment, with an empty input by default. Stops the
 * program at the deadline, on cancellation, at the output limit, and if its processes exceed the
 * memory limit. When the promise resolves, no process of a confined read remains. Of a write only a
 * process that left the group remains, such as a daemon. A sandbox that could not be made because a
 * mount disappeared is made again.
 */
export async function runProgram(argv: readonly string[], options: RunOptions, runner: Runner): Promise<RunResult> {
  for (let left = maxRepeats; ; left--) {
    const ran = await runOnce(argv, options, runner)
    const why = options.confine === 'read' ? whyNotStarted(runner.confinement, ran) : null
    if (why === null) return ran
    // Tests another command, because the program itself may have printed the message. The sandbox
    // works if the other command runs in it.
    if (left === 0) {
      const other = await runOnce(['/bin/true'], { confine: 'read', sees: options.sees }, runner)
      if (other.exitCode === 0) return ran
      throw new CapabilityError('failed', `The sandbox of the command was not created: ${why}`)
    }
    await runner.confinement.lookAgain?.()
  }
}

async function runOnce(argv: readonly string[], options: RunOptions, runner: Runner): Promise<RunResult> {
  runner.signal.throwIfAborted()
  const cwd = options.cwd ?? '/'
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    throw new CapabilityError('not_found', `${cwd} is not a directory.`)
  const [program, ...words] = await limitedAndConfined(argv, { ...options, cwd }, runner)
  // Awaits nothing before the listeners are added, because a failed start is reported in the next
  // tick.
  const child = spawn(program, words, {
    cwd,
    detached: true,
    // Makes a pipe only for an input. A pipe of Node is a socket, with which bash takes itself for
    // a remote shell and reads a start file.
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    env: environmentFor(options, runner),
  }) as RunningProgram
  return new Promise((resolve, reject) => {
    if (child.pid === undefined) child.once('error', reject)
    else {
      runner.onStart?.(child.pid)
      watchUntilEnd({ child, pid: child.pid, options, runner, resolve })
    }
  })
}

/** Builds the command line that starts the program with limits. A read is also confined. */
async function limitedAndConfined(
  argv: readonly string[],
  { confine, cwd, sees }: RunOptions & { cwd: string },
  { limits, confinement }: Runner,
): Promise<[string, ...string[]]> {
  const confined = confine === 'read'
  const inner = confined ? await confinement.wrap(argv, { cwd, sees }) : [...argv]
  // Forbids writes to files if they could reach the disk. Otherwise limits files in memory.
  const isWritable = confinement.sandbox === 'user' || sees?.includes('mounts')
  const fileBlocks = confined ? (isWritable ? '0' : largestFileBlocks) : 'unlimited'
  const shell = [
    '/bin/sh',
    '-c',
    limited,
    'sh',
    String(limits.cpu_seconds),
    String(limits.memory_mib * 1_024),
    fileBlocks,
  ]
  const setpriv = find('setpriv')
  const words = setpriv ? [setpriv, '--pdeathsig', 'KILL', '--', ...shell, ...inner] : [...shell, ...inner]
  return words as [string, ...string[]]
}

function environmentFor({ confine, env }: RunOptions, { confinement, marker }: Runner): NodeJS.ProcessEnv {
  return {
    PATH: confine === 'root' ? search.join(':') : path,
    LANG: 'C.UTF-8',
    HOME: confine === 'root' ? '/root' : homeOf(),
    ...(confine === 'read' ? { ...readEnvironment, ...confinement.environment } : {}),
    ...env,
    [markerName]: marker,
  }
}

type Watched = {
  child: RunningProgram
  pid: number
  options: RunOptions
  runner: Runner
  resolve(result: RunResult): void
}

/** Collects the output, stops the processes at a limit or by the signal, and then resolves. */
function watchUntilEnd({ child, pid, options, runner, resolve }: Watched): void {
  const { limits, confinement, signal } = runner
  const confined = options.confine === 'read'
  const hidesOwners = confined && confinement.hidesOwners(options.sees ?? [])
  const output = collect(limits.output_bytes, options.onLine ?? null)
  let stoppedBy: RunResult['stoppedBy'] = null
  let stopping: Promise<unknown> = Promise.resolve()

  const stop = (why: NonNullable<RunResult['stoppedBy']>, gently: boolean) => {
    if (stoppedBy !== null) return
    stoppedBy = why
    stopping = terminate(pid, runner.marker, gently).then((left) => {
      // Does not wait for a process that remains: of another user, or one that hangs in the kernel.
      if (left > 0) finish(null, null)
    })
  }
  let isFinished = false
  const finish = (exitCode: number | null, endSignal: string | null) => {
    if (isFinished) return
    isFinished = true
    clearInterval(watch)
    child.stdout.destroy()
    child.stderr.destroy()
    output.end()
    resolve({
      exitCode: stoppedBy === null ? exitCode : null,
      signal: endSignal,
      stdout: output.text('stdout'),
      stderr: output.text('stderr'),
      truncated: output.truncated,
      stoppedBy,
      ...(hidesOwners && { hidesOwners }),
    })
  }
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].on('error', () => undefined)
    child[stream].on('data', (chunk: Buffer) => {
      if (!output.take(stream, chunk)) stop('output', false)
    })
  }
  // Ignores this error, because a program that does not read its input must not end the agent.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(options.input)
  const onAbort = () => stop(isDeadline(signal) ? 'deadline' : 'cancelled', !confined)
  signal.addEventListener('abort', onAbort, { once: true })
  // Checks the signal again. The abort may have come while the sandbox was made, and comes only
  // once.
  if (signal.aborted) onAbort()
  const watch = setInterval(() => {
    const bytes = groupMembersOf(pid, null).reduce((sum, { residentBytes }) => sum + residentBytes, 0)
    if (bytes > limits.memory_mib * 1_048_576) stop('memory', false)
  }, watchMs)

  child.once('error', () => undefined)
  child.once('exit', async (exitCode, endSignal) => {
    clearInterval(watch)
    signal.removeEventListener('abort', onAbort)
    const drained = Promise.all([ended(child.stdout), ended(child.stderr)])
    await Promise.race([drained, pause(drainMs)])
    await stopping
    // Kills all processes of a read. Of a write it kills only the process group, which a daemon
    // leaves.
    if (!confined) endGroup(pid)
    else if (!confinement.endsWhole(options.sees ?? [])) await terminate(pid, runner.marker, false)
    finish(exitCode, endSignal)
  })
}

/** Whether the deadline aborted a signal. With any other reason, a person cancelled the call. */
function isDeadline(signal: AbortSignal): boolean {
  return (signal.reason as { name?: unknown } | undefined)?.name === 'TimeoutError'
}

function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch {
    // Ignores the error, because no process of the group remains.
  }
}

function ended(stream: NodeJS.ReadableStream & { readableEnded?: boolean; destroyed?: boolean }): Promise<void> {
  if (stream.readableEnded || stream.destroyed) return Promise.resolve()
  return new Promise((resolve) => stream.once('close', () => resolve()))
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

const maxLineCharacters = 4_000

/** The bytes of both outputs, up to a common limit. Each line is passed on when it is complete. */
type Output = {
  /** Returns false when the limit is reached. Bytes above it are dropped. */
  take(stream: 'stdout' | 'stderr', bytes: Uint8Array): boolean
  /** Passes on the last lines, even if they are incomplete. */
  end(): void
  text(stream: 'stdout' | 'stderr'): string
  readonly truncated: boolean
}

export function collect(limitBytes: number, onLine: ((line: string) => void) | null): Output {
  const chunks = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] }
  const lines = { stdout: lineReader(onLine), stderr: lineReader(onLine) }
  let left = limitBytes
  let truncated = false
  return {
    take(stream, bytes) {
      if (truncated) return false
      const kept = bytes.length > left ? bytes.subarray(0, left) : bytes
      left -= kept.length
      truncated = kept.length < bytes.length
      chunks[stream].push(kept)
      lines[stream].take(kept)
      return !truncated
    },
    end() {
      lines.stdout.end()
      lines.stderr.end()
    },
    text: (stream) => plain(Buffer.concat(chunks[stream])),
    get truncated() {
      return truncated
    },
  }
}

/**
 * Decodes any bytes. Invalid UTF-8 becomes U+FFFD; control sequences and invisible characters are
 * removed.
 */
function plain(bytes: Uint8Array): string {
  return stripText(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
}

function lineReader(onLine: ((line: string) => void) | null) {
  if (!onLine) return { take: () => undefined, end: () => undefined }
  const decoder = new TextDecoder('utf-8')
  let open = ''
  const tell = (line: string) => onLine(stripText(line.slice(0, maxLineCharacters), { keepNewlines: false }))
  return {
    take(bytes: Uint8Array) {
      open += decoder.decode(bytes, { stream: true })
      const parts = open.split('\n')
      open = parts.pop() ?? ''
      for (const line of parts) tell(line)
      // Passes on a long line in pieces, so that the unsent part of the line cannot grow.
      while (open.length > maxLineCharacters) {
        tell(open)
        open = open.slice(maxLineCharacters)
      }
    },
    end() {
      open += decoder.decode()
      if (open !== '') tell(open)
      open = ''
    },
  }
}
