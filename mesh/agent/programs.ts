import { accessSync, constants, readFileSync } from 'node:fs'
import { access, readdir, readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type CapabilityOutcome, failedOutcome, type RunResult } from './capability.ts'

/**
 * The PATH of programs that run without the agent's environment. apt and dpkg need the sbin
 * directories.
 */
export const systemPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export async function isInstalled(program: string): Promise<boolean> {
  for (const directory of systemPath.split(':')) {
    try {
      await access(join(directory, program), constants.X_OK)
      return true
    } catch {}
  }
  return false
}

/** Returns the outcome of a program that failed, with its output. Null for exit code 0. */
export function whyNotDone(what: string, ran: RunResult): CapabilityOutcome | null {
  const result = { exit_code: ran.exitCode, output: tail(ran.stdout + ran.stderr) }
  const outcome = (code: 'timeout' | 'cancelled' | 'failed', message: string): CapabilityOutcome => ({
    ...failedOutcome(code, message, result),
    truncated: ran.truncated,
  })
  if (ran.stoppedBy === 'deadline') return outcome('timeout', `${what} was stopped at the deadline`)
  if (ran.stoppedBy === 'cancelled') return outcome('cancelled', `${what} was cancelled`)
  if (ran.stoppedBy === 'output') return outcome('failed', `${what} printed too much and was stopped`)
  if (ran.stoppedBy === 'memory') return outcome('failed', `${what} used too much memory and was stopped`)
  if (ran.exitCode === 0) return null
  const why = ran.exitCode === null ? `was ended by ${ran.signal ?? 'a signal'}` : `failed with ${ran.exitCode}`
  return outcome('failed', `${what} ${why}: ${lastLines(ran)}`)
}

/** Keeps the end of a text, because errors are at the end. */
export const tail = (text: string, length = 4_000) => (text.length > length ? text.slice(-length).toWellFormed() : text)

function lastLines({ stdout, stderr }: RunResult): string {
  return tail((stderr.trim() || stdout.trim()).split('\n').slice(-4).join(' '), 600)
}

/** Directories in which the agent finds the system's programs. */
export const search = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']

export const dropAll = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all']

/**
 * Whether the agent is root. Without root, a program in a namespace has no right to make a process
 * namespace, so its children are found in /proc.
 */
export function isRoot(): boolean {
  return process.getuid?.() === 0
}

export function withoutMore(): string[] {
  return isRoot() ? dropAll : ['--no-new-privs']
}

export function find(program: string): string | null {
  for (const directory of search) {
    try {
      accessSync(`${directory}/${program}`, constants.X_OK)
      return `${directory}/${program}`
    } catch {
      // Continues, because the next directory may have the program.
    }
  }
  return null
}

/** Returns the home of the agent's user, who may be in no user list in a container. */
export function homeOf(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/'
  }
}

/** One process as /proc lists it. Pid *and* start time identify it, because pids are reused. */
export type Process = {
  pid: number
  ppid: number
  /** Clock ticks since the machine started, as text, because it is an identifier. */
  start_time: string
  name: string
  /** The state as one letter: R, S, D, Z, T and so on. */
  state: string
  cpu_seconds: number
  kernel_thread: boolean
}

/**
 * Clock ticks per second of /proc. The kernel's interface fixes them at 100 on every machine that
 * Node runs on.
 */
const ticksPerSecond = 100
const PF_KTHREAD = 0x00200000

/**
 * Reads a line of /proc/PID/stat. The name may contain spaces and parentheses, so the other fields
 * begin after the last parenthesis.
 */
export function readStat(line: string): Process {
  const open = line.indexOf('(')
  const close = line.lastIndexOf(')')
  const rest = line.slice(close + 2).split(' ')
  return {
    pid: Number(line.slice(0, open - 1)),
    ppid: Number(rest[1]),
    start_time: rest[19]!,
    name: line.slice(open + 1, close),
    state: rest[0]!,
    cpu_seconds: (Number(rest[11]) + Number(rest[12])) / ticksPerSecond,
    kernel_thread: (Number(rest[6]) & PF_KTHREAD) !== 0,
  }
}

/**
 * Returns the process that has this pid now. Null if there is none, or if the pid is of a thread.
 */
export async function processOf(pid: number): Promise<Process | null> {
  try {
    const [stat, status] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/status`, 'utf8'),
    ])
    return statusField(status, 'Tgid') === String(pid) ? readStat(stat) : null
  } catch {
    return null
  }
}

export const statusField = (status: string, field: string): string | null =>
  new RegExp(`^${field}:\\s*(.*)$`, 'm').exec(status)?.[1]?.trim() ?? null

export async function pids(): Promise<number[]> {
  return (await readdir('/proc'))
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .sort((a, b) => a - b)
}

/** Lists the agent and its ancestors by pid. Ending one of them would end the agent. */
export function ownAncestors(): number[] {
  const found: number[] = []
  for (let pid = process.pid; pid > 0 && !found.includes(pid); ) {
    found.push(pid)
    try {
      pid = readStat(readFileSync(`/proc/${pid}/stat`, 'utf8')).ppid
    } catch {
      break
    }
  }
  return found
}
