import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Set in the environment of everything the agent starts: what it started is found by it, even after
 * it left its session.
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
 * Processes that belong to a leader that was started in its own session: its group, its
 * session, its descendants and, with a marker, every process with that marker in its environment.
 * Zombies are left out. What changed its session *and* wiped its environment *and* lost its parent
 * is not found.
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
 * When a process started, in clock ticks since boot: with the pid it names one process. Null when
 * there is none.
 */
export function startTicksOf(pid: number): string | null {
  return stat(pid)?.startTicks ?? null
}

/** The time since this boot of the machine. */
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
    // The name is in brackets and may hold anything.
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
/** After SIGKILL: what still lives then waits in the kernel, and dies when that lets it go. */
const rounds = 50

/**
 * Ends everything that belongs to a leader: SIGTERM, and SIGKILL after a second for what still
 * runs; without `gently` SIGKILL at once. Resolves with how many are still there, which is 0 unless
 * something hangs in the kernel.
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
    // Stopped first, so that a process which forks faster than it is killed cannot.
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
    // It has ended meanwhile.
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/**
 * One agent per state directory: two would tear the journal's chain. Throws when another one holds
 * it; answers its release.
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

/** The process of the agent that runs in a state directory; null when none does. */
export function holderOf(state: string): number | null {
  try {
    const [pid, startTicks, boot] = readFileSync(join(state, 'agent.lock'), 'utf8').trim().split(' ')
    return boot === bootId() && startTicksOf(Number(pid)) === startTicks ? Number(pid) : null
  } catch {
    return null
  }
}
