import { accessSync, constants, readFileSync } from 'node:fs'
import { access, readdir, readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { type CapabilityOutcome, failedOutcome, type RunResult } from './capability.ts'

/**
 * The PATH of programs that do not inherit the agent's environment; apt and dpkg need the sbin
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

/**
 * Why a program that was started did not do its work; null when it ended with 0. Keeps what it
 * printed.
 */
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

/** Errors stand at the end. */
export const tail = (text: string, length = 4_000) => (text.length > length ? text.slice(-length).toWellFormed() : text)

function lastLines({ stdout, stderr }: RunResult): string {
  return tail((stderr.trim() || stdout.trim()).split('\n').slice(-4).join(' '), 600)
}

/** Where the system's own programs are. */
export const search = ['/usr/bin', '/bin', '/usr/sbin', '/sbin']

export const dropAll = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--ambient-caps=-all']

/**
 * A user without root loses every right of a namespace by starting a program in it: such a
 * program's children are found in /proc then.
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
      // In the next one, perhaps.
    }
  }
  return null
}

/** For the agent's user, who in a container may be in no user list. */
export function homeOf(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/'
  }
}

/** One process as /proc shows it. Pid *and* start time identify a process: pids are reused. */
export type Process = {
  pid: number
  ppid: number
  /**
   * Clock ticks since the machine started; text, because it is an identifier and not calculated
   * with.
   */
  start_time: string
  name: string
  /** One letter: R, S, D, Z, T and so on. */
  state: string
  cpu_seconds: number
  kernel_thread: boolean
}

/**
 * Ticks of /proc for user space: fixed at 100 by the kernel's interface on every machine that Node
 * runs on.
 */
const ticksPerSecond = 100
const PF_KTHREAD = 0x00200000

/**
 * Reads the line of /proc/PID/stat. The name may hold spaces and parentheses, so the rest begins
 * after the last one.
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

/** The process of this pid now; null when there is none, or when the number is that of a thread. */
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

/** This process and its ancestors: ending one of them ends the agent. */
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
