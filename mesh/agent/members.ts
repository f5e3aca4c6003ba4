import { readdirSync, readFileSync } from 'node:fs'

/** Set in the environment of everything the agent starts: what it started is found by it, even after it left its session. */
export const markerName = 'NIGHTSHIFT_OPERATION'

export type Member = { pid: number; residentBytes: number }

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
 * Processes that belong to a leader that was started in a session of its own: its group, its session, its descendants and, with a
 * marker, whoever carries that in the environment. Zombies are left out. What changed its session *and* wiped its environment *and*
 * lost its parent is not found.
 */
export function members(leader: number, marker: string | null): Member[] {
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

/** When a process started, in clock ticks since boot: with the pid it names one process. Null when there is none. */
export function startTicksOf(pid: number): string | null {
  return stat(pid)?.startTicks ?? null
}

/** Of this boot of the machine. */
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
