import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { readVariables } from '../config/variables.ts'

export type ProcessState = 'running' | 'stopped' | 'gone'

/** Returns the state of a process as the kernel reports it. A zombie counts as gone. */
export function processState(pid: number): ProcessState {
  const letter = stat(pid)?.state
  if (letter === undefined || letter.startsWith('Z') || letter.startsWith('X')) return 'gone'
  return letter.startsWith('T') ? 'stopped' : 'running'
}

/**
 * Returns the start of a process as an opaque text. Pid and start together identify one process.
 * Null if the process is gone.
 */
function processStart(pid: number): string | null {
  return stat(pid)?.start ?? null
}

/** The boot time. Read once, so that a change of the system clock changes no start time. */
let bootSeconds: number | null = null

/** Returns when a process began. Null if the process is gone, or its start is unknown. */
export function processStartedAt(pid: number): string | null {
  const start = processStart(pid)
  if (start === null) return null
  bootSeconds ??=
    process.platform === 'linux' ? Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]) : 0
  // Converts ticks since boot on Linux (100 a second); elsewhere `ps` prints a date.
  const ms = process.platform === 'linux' ? bootSeconds * 1_000 + Number(start) * 10 : Date.parse(start)
  return Number.isFinite(ms) ? new Date(ms).toISOString() : null
}

/**
 * Returns the CPU seconds of user and system that a process used, in steps of 1/100 s. 0 if the
 * kernel does not report them.
 */
export function cpuSeconds(pid: number): number {
  const found = stat(pid)
  return found ? found.cpuTicks / 100 : 0
}

/** Kills a process group. A group that no longer exists counts as killed. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

function stat(pid: number): { state: string; start: string; cpuTicks: number } | null {
  if (process.platform === 'linux') {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // Counts the fields from the last parenthesis: the command's name is in parentheses, and may
      // contain spaces and parentheses.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return { state: fields[0]!, start: fields[19]!, cpuTicks: Number(fields[11]) + Number(fields[12]) }
    } catch {
      return null
    }
  }
  const { stdout } = spawnSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], { encoding: 'utf8' })
  const [state, ...start] = stdout.trim().split(/\s+/)
  return state ? { state, start: start.join(' '), cpuTicks: 0 } : null
}

export type LabAccount = { uid: number; gid: number }

/** Returns the user of the nodes: `nobody` if root started the lab. Null for the current user. */
export function nodeAccount(): LabAccount | null {
  if (process.getuid?.() !== 0) return null
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith('nobody:'))
  if (!line) throw new Error('the lab was started as root, and /etc/passwd has no user "nobody", as whom its nodes run')
  const [, , uid, gid] = line.split(':')
  // Converts to unsigned, because macOS writes -2.
  return { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }
}

/** Replaces a file atomically: a reader, or a start after a crash, sees the old or the new file. */
export function writeWhole(file: string, text: string): void {
  const fresh = `${file}.new`
  const fd = openSync(fresh, 'w', 0o600)
  try {
    writeSync(fd, text)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(fresh, file)
}

type Child = { id: string; pid: number; port: number }

/** The child processes of the lab, by id. A child that ends is no longer listed. */
export type Children = {
  get(id: string): Child | undefined
  /** Returns the pids of all running children, by id. */
  pids(): Record<string, number>
  /** Resolves when the program listens. Rejects if it ends first or needs more than `startMs`. */
  start(id: string, program: string, directory: string, spec: object): Promise<Child>
  /** Sends one JSON line to the child, if the child is running. */
  tell(id: string, message: object): void
  /** Kills the child with all processes in its process group, and waits until the child is gone. */
  kill(id: string): Promise<void>
  stopAll(): Promise<void>
}

const startMs = 15_000

const leftovers = z.array(z.object({ id: z.string(), pid: z.number().int(), start: z.string() }))
type Leftover = z.infer<typeof leftovers>[number]

type Running = Child & { process: ChildProcess; start: string }

type Supervisor = { dir: string; file: string; account: LabAccount | null; guard: Guard; running: Map<string, Running> }

/** Kills the processes of an earlier controller in `dir`. Throws if this controller still runs. */
export function openChildren(dir: string, account: LabAccount | null): Children {
  const file = join(dir, 'children.json')
  clearLeftovers(file, dir)
  mkdirSync(join(dir, 'log'), { recursive: true, mode: 0o700 })
  const running = new Map<string, Running>()
  const supervisor = { dir, file, account, guard: startGuard(), running }
  record(supervisor)
  return {
    get: (id) => running.get(id),
    pids: () => Object.fromEntries([...running.values()].map(({ id, pid }) => [id, pid])),
    start: (id, program, directory, spec) => start(supervisor, id, program, directory, spec),
    tell: (id, message) => void running.get(id)?.process.stdin?.write(`${JSON.stringify(message)}\n`),
    kill: (id) => kill(supervisor, id),
    stopAll: () => stopAll(supervisor),
  }
}

/** Stores the running processes, so that the next controller in this directory can kill them. */
function record({ file, running }: Supervisor): void {
  const all: Leftover[] = [...running.values()].map(({ id, pid, start }) => ({ id, pid, start }))
  all.push({ id: 'controller', pid: process.pid, start: processStart(process.pid) ?? '' })
  writeWhole(file, JSON.stringify(all))
}

async function start(
  supervisor: Supervisor,
  id: string,
  program: string,
  directory: string,
  spec: object,
): Promise<Child> {
  const { dir, account, guard, running } = supervisor
  if (running.has(id)) throw new Error(`${id} already runs`)
  const log = openSync(join(dir, 'log', `${id}.log`), 'a', 0o600)
  // Passes on the directory of compiled programs, if any: seventeen nodes start at once.
  const compiled = readVariables('NODE_COMPILE_CACHE')
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'node', program), JSON.stringify({ account, ...spec, id })],
    // Starts the child in a separate process group, to kill it with all its own children. The
    // environment is minimal, so that the child knows no token.
    { cwd: directory, stdio: ['pipe', 'pipe', log], detached: true, env: { PATH: '/usr/bin:/bin', ...compiled } },
  )
  closeSync(log)
  child.stdin!.on('error', () => {})
  const pid = child.pid
  if (pid === undefined) {
    const [error] = await once(child, 'error')
    throw new Error(`${id} did not start: ${(error as Error).message}`)
  }
  guard.add(pid)
  const entry = { id, pid, port: 0, process: child, start: processStart(pid) ?? '' }
  running.set(id, entry)
  record(supervisor)
  const ended = watchExit(supervisor, entry)
  ended.catch(() => {})
  const deadline = AbortSignal.timeout(startMs)
  const late = once(deadline, 'abort').then(() => {
    throw new Error(`${id} did not listen within ${startMs / 1000} s`)
  })
  late.catch(() => {})
  try {
    entry.port = await Promise.race([listening(child), ended, late])
  } catch (error) {
    killGroup(pid)
    throw error
  }
  return { id, pid, port: entry.port }
}

/** Rejects with the child's last output when the child has ended. */
function watchExit(supervisor: Supervisor, { id, pid, process: child }: Running): Promise<never> {
  return new Promise<never>((_, reject) => {
    child.once('exit', (code, signal) => {
      // Kills the child's own children, whatever the cause of its end.
      killGroup(pid)
      supervisor.guard.drop(pid)
      supervisor.running.delete(id)
      record(supervisor)
      const log = join('log', `${id}.log`)
      reject(
        new Error(`${id} ended with ${signal ?? `code ${code}`}${lastError(join(supervisor.dir, log))}; see ${log}`),
      )
    })
  })
}

async function kill({ running }: Supervisor, id: string): Promise<void> {
  const child = running.get(id)
  if (!child) return
  const exited = once(child.process, 'exit')
  killGroup(child.pid)
  await exited
}

async function stopAll(supervisor: Supervisor): Promise<void> {
  const { file, guard, running } = supervisor
  // Asks each child to end by closing its stdin. Stopped or slow children are killed.
  for (const child of running.values()) child.process.stdin?.end()
  const patience = Date.now() + 500
  while (running.size > 0 && Date.now() < patience) await sleep(10)
  await Promise.all([...running.keys()].map((id) => kill(supervisor, id)))
  guard.release()
  writeWhole(file, '[]')
}

/** Returns the last error in a program's log, so that a person need not open the log. */
function lastError(log: string): string {
  const line = readFileSync(log, 'utf8')
    .match(/^.*Error: .*$/gm)
    ?.at(-1)
  return line === undefined ? '' : ` (${line.trim().slice(0, 200)})`
}

async function listening(child: ChildProcess): Promise<number> {
  const lines = createInterface({ input: child.stdout! })
  const [line] = await once(lines, 'line')
  return z.object({ listening: z.number().int() }).parse(JSON.parse(line as string)).listening
}

function clearLeftovers(file: string, dir: string): void {
  let all: Leftover[]
  try {
    all = leftovers.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw new Error(`cannot read ${file}: ${(error as Error).message}`)
  }
  const alive = all.filter(({ pid, start }) => processStart(pid) === start)
  const controller = alive.find(({ id }) => id === 'controller')
  if (controller && controller.pid !== process.pid) {
    throw new Error(`another lab runs in ${dir} (process ${controller.pid})`)
  }
  for (const { id, pid } of alive) if (id !== 'controller') killGroup(pid)
}

/**
 * A shell that outlives the controller by a moment. The shell knows every child's process group.
 * When its pipe closes, it kills the remaining groups, however the controller ended. A child in
 * SIGSTOP cannot itself notice the controller's end.
 */
type Guard = { add(pid: number): void; drop(pid: number): void; release(): void }

const script = `
pids=
while read -r word pid; do
  if [ "$word" = add ]; then pids="$pids $pid"; continue; fi
  kept=
  for each in $pids; do [ "$each" = "$pid" ] || kept="$kept $each"; done
  pids=$kept
done
for each in $pids; do kill -s KILL -- "-$each" 2>/dev/null; done
`

function startGuard(): Guard {
  const shell = spawn('/bin/sh', ['-c', script], { stdio: ['pipe', 'ignore', 'ignore'], detached: true, env: {} })
  // Ignores errors of the guard: children watch their parent too, and the next start kills
  // leftovers.
  shell.stdin.on('error', () => {})
  shell.on('error', () => {})
  return {
    add: (pid) => void shell.stdin.write(`add ${pid}\n`),
    drop: (pid) => void shell.stdin.write(`drop ${pid}\n`),
    release: () => void shell.stdin.end(),
  }
}
