import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * What tells a process from a later one with the same number: boot and start time. Undefined when no such process runs;
 * one that has ended and only waits for its parent to notice counts as gone.
 */
export function identityOf(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const stat = statOf(pid)
    return stat && `${bootId()}:${stat.startTicks}`
  }
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim()
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '')
  } catch {
    return undefined
  }
}

/** True while the very process runs that `identityOf` described, and not another one that got its number. */
export function isRunning(pid: number, identity: string): boolean {
  return identityOf(pid) === identity
}

/** The living processes of a process group. */
export function groupMembers(groupId: number): number[] {
  if (process.platform === 'linux') {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => statOf(pid)?.groupId === groupId)
  }
  return execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, group, state]) => Number(group) === groupId && !state?.startsWith('Z'))
    .map(([pid]) => Number(pid))
}

/** The directory a process works in; undefined when it is gone or not ours to look at. */
export function workingDirectoryOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') return readlinkSync(`/proc/${pid}/cwd`)
    const lines = execFileSync('lsof', ['-a', '-p', String(pid), '-d', 'cwd', '-Fn'], { encoding: 'utf8' }).split('\n')
    return lines.find((line) => line.startsWith('n'))?.slice(1)
  } catch {
    return undefined
  }
}

/** Sends a signal to a process, or to a group by its negated number. False when nobody was there to get it. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

function statOf(pid: number): { groupId: number; startTicks: string } | undefined {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  } catch {
    return undefined
  }
  // The second field is the name in brackets, which may itself hold blanks and brackets.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, , groupId] = fields
  const startTicks = fields[19]
  if (state === 'Z' || state === 'X' || groupId === undefined || startTicks === undefined) return undefined
  return { groupId: Number(groupId), startTicks }
}

let cachedBootId: string | undefined

function bootId(): string {
  cachedBootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return cachedBootId
}
