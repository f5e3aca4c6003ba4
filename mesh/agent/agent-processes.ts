import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The environment variable that marks each program that the agent starts. The agent finds a marked
 * process even after the process left its session.
 */
export const markerName = 'NIGHTSHIFT_OPERATION'

type Member = { pid: number; residentBytes: number }

type Stat = {
  pid: number
  parent: number
  group: number
  session: number
  startTicks: string
  residentPages: number
  state: string
}

/**
 * Lists the processes of a leader that was started in a separate session: its group, its session,
 * its descendants and, with a marker, every process with that marker in its environment. Excludes
 * zombies. Does not find a process that changed its session *and* wiped its environment *and* lost
 * its parent.
 */
export function groupMembersOf(leader: number, marker: string | null): Member[] {
  const all = processes()
  const found = new Set<number>()
  for (const { pid, group, session } of all)
    if (pid === leader || group === leader || session === leader) found.add(pid)
  if (marker !== null) {
    for (const { pid, startTicks } of all)
      if (!found.has(pid) && startTicks !== '0' && carries(pid, marker)) found.add(pid)
  }
  for (let grew = true; grew; ) {
    grew = false
    for (const { pid, parent } of all) {
      if (!found.has(parent) || found.has(pid)) continue
      found.add(pid)
      grew = true
    }
  }
  return all
    .filter(({ pid, state }) => found.has(pid) && pid !== process.pid && state !== 'Z' && state !== 'X')
    .map(({ pid, residentPages }) => ({ pid, residentBytes: residentPages * 4_096 }))
}

/**
 * Returns the start time of a process in clock ticks since boot, which identifies the process
 * together with its pid. Null if there is no process with this pid.
 */
export function startTicksOf(pid: number): string | null {
  return stat(pid)?.startTicks ?? null
}

/** Returns the id of the machine's present boot. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return 'unknown'
  }
}

function processes(): Stat[] {
  const found: Stat[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    const read = Number.isInteger(pid) && pid > 0 ? stat(pid) : null
    if (read) found.push(read)
  }
  return found
}

function stat(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name of the process is in parentheses and may contain any character.
    const rest = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return {
      pid,
      state: rest[0] ?? '',
      parent: Number(rest[1]),
      group: Number(rest[2]),
      session: Number(rest[3]),
      startTicks: rest[19] ?? '0',
      residentPages: Number(rest[21]),
    }
  } catch {
    return null
  }
}

function carries(pid: number, marker: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${markerName}=${marker}`)
  } catch {
    return false
  }
}

const graceMs = 1_000
const roundMs = 20
/** The most rounds of SIGKILL. A process that still exists afterwards hangs in the kernel. */
const rounds = 50

/**
 * Ends all processes of a leader: with `gently` by SIGTERM, and after a second by SIGKILL. Resolves
 * with the number of remaining processes, which is 0 unless one hangs in the kernel.
 */
export async function terminate(leader: number, marker: string, gently: boolean): Promise<number> {
  if (gently) {
    for (const { pid } of groupMembersOf(leader, marker)) send(pid, 'SIGTERM')
    const until = Date.now() + graceMs
    while (Date.now() < until) {
      await pause(roundMs)
      if (groupMembersOf(leader, marker).length === 0) return 0
    }
  }
  for (let round = 0; round < rounds; round += 1) {
    const left = groupMembersOf(leader, marker)
    if (left.length === 0) return 0
    // Stops all processes first, so that no process can fork faster than its children are killed.
    for (const { pid } of left) send(pid, 'SIGSTOP')
    for (const { pid } of left) send(pid, 'SIGKILL')
    await pause(roundMs)
  }
  return groupMembersOf(leader, marker).length
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // Ignores the error, because the process has ended in the meantime.
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/**
 * Takes the lock of a state directory, because two agents would break the journal's chain. Throws
 * if another agent holds the lock. Returns a function that releases the lock.
 */
export function lock(state: string): () => void {
  const file = join(state, 'agent.lock')
  const own = `${process.pid} ${startTicksOf(process.pid)} ${bootId()}\n`
  for (let attempt = 0; ; attempt += 1) {
    try {
      writeFileSync(file, own, { flag: 'wx', mode: 0o600 })
      return () => rmSync(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || attempt > 0) throw error
    }
    const holder = holderOf(state)
    if (holder !== null) throw new Error(`Another agent (process ${holder}) uses ${state}.`)
    rmSync(file, { force: true })
  }
}

/** Returns the pid of the agent that uses a state directory. Null if no agent uses it. */
export function holderOf(state: string): number | null {
  try {
    const [pid, startTicks, boot] = readFileSync(join(state, 'agent.lock'), 'utf8').trim().split(' ')
    return boot === bootId() && startTicksOf(Number(pid)) === startTicks ? Number(pid) : null
  } catch {
    return null
  }
}
