import { spawnSync } from 'node:child_process'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'

export type ProcessState = 'running' | 'stopped' | 'gone'

/** The state of a process as the kernel tells it, without asking the process. A zombie is gone. */
export function processState(pid: number): ProcessState {
  const letter = stat(pid)?.state
  if (letter === undefined || letter.startsWith('Z') || letter.startsWith('X')) return 'gone'
  return letter.startsWith('T') ? 'stopped' : 'running'
}

/** When the process began, as an opaque text: with the pid it names one process for ever. Null when it is gone. */
export function processStart(pid: number): string | null {
  return stat(pid)?.start ?? null
}

/** The moment of the boot, read once: the kernel reckons it by a clock that may be set, and a start must not move. */
let bootSeconds: number | null = null

/** When the process began, as a time. Null when it is gone, or the kernel does not say. */
export function processStartedAt(pid: number): string | null {
  const start = processStart(pid)
  if (start === null) return null
  bootSeconds ??=
    process.platform === 'linux' ? Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1]) : 0
  // Ticks of a clock of 100 Hz after the boot; elsewhere `ps` prints a date.
  const ms = process.platform === 'linux' ? bootSeconds * 1_000 + Number(start) * 10 : Date.parse(start)
  return Number.isFinite(ms) ? new Date(ms).toISOString() : null
}

/** CPU that a process has used, of user and system, in seconds of a clock of 100 Hz. 0 where the kernel does not tell. */
export function cpuSeconds(pid: number): number {
  const found = stat(pid)
  return found ? found.cpuTicks / 100 : 0
}

/** Kills the process group. A group that no longer exists is what was wanted. */
export function killGroup(pid: number): void {
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
      // The command's name is in parentheses and may hold spaces and parentheses itself; fields count from its end.
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

export type Account = { uid: number; gid: number }

/** Whom nodes run as: `nobody` where the start is root, otherwise the user who started it (null). */
export function nodeAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith('nobody:'))
  if (!line) throw new Error('the lab was started as root and /etc/passwd has no user "nobody" to run its nodes as')
  const [, , uid, gid] = line.split(':')
  // macOS writes -2.
  return { uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }
}

/** Replaces a file as one step: a reader, and a start after a crash, sees the old text or the new one. */
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
