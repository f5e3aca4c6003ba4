import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

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
export function lineage(): number[] {
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
