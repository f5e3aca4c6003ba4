import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { groupMembers, identityOf, isRunning, sendSignal } from './process-table.ts'

/** Who was started by whom, on disk, so that a start that was killed does not leave its children for ever. */
export interface Ledger {
  file: string
  add(name: string, pid: number): void
  remove(pid: number): void
  /** Kills the groups of all that is listed, at once and synchronously, and closes the ledger as it then stands. */
  kill(): void
}

interface Page {
  owner: { pid: number; identity: string }
  processes: { name: string; pid: number; identity: string }[]
}

/** Opens a new ledger that belongs to this process. Call `stopLeftovers` first: what the file held is forgotten. */
export function openLedger(file: string): Ledger {
  const page: Page = { owner: { pid: process.pid, identity: identityOf(process.pid) ?? '' }, processes: [] }
  let closed = false
  const write = () => {
    if (closed) return
    writeFileSync(`${file}.new`, `${JSON.stringify(page, null, 2)}\n`, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
  write()
  return {
    file,
    add(name, pid) {
      const identity = identityOf(pid)
      if (identity === undefined) return
      page.processes.push({ name, pid, identity })
      write()
    },
    remove(pid) {
      page.processes = page.processes.filter((entry) => entry.pid !== pid)
      write()
    },
    kill() {
      closed = true
      for (const { pid } of page.processes) sendSignal(-pid, 'SIGKILL')
    },
  }
}

/**
 * Stops what the ledger in `file` lists, if the process that wrote it is gone, and returns the names of what it stopped.
 * Never touches a process that merely got the number of one in the ledger.
 */
export async function stopLeftovers(file: string, graceMs = 3_000): Promise<string[]> {
  const page = readPage(file)
  if (!page || isRunning(page.owner.pid, page.owner.identity)) return []

  const left = page.processes.filter(({ pid, identity }) => isRunning(pid, identity) || lostItsLeader(pid, identity))
  // Latest first: a worker is gone before the database it writes to.
  for (const { pid } of left.toReversed()) sendSignal(-pid, 'SIGTERM')
  const deadline = Date.now() + graceMs
  const alive = () => left.filter(({ pid }) => groupMembers(pid).length > 0)
  while (alive().length > 0 && Date.now() < deadline) await sleep(25)
  for (const { pid } of alive()) sendSignal(-pid, 'SIGKILL')
  for (let round = 0; alive().length > 0 && round < 80; round++) await sleep(25)
  return left.map((entry) => entry.name)
}

/** A group whose leader has died keeps the leader's number, and nobody else gets that number meanwhile. */
function lostItsLeader(pid: number, identity: string): boolean {
  const sameBoot = identityOf(process.pid)?.split(':')[0] === identity.split(':')[0]
  return sameBoot && identityOf(pid) === undefined && groupMembers(pid).length > 0
}

function readPage(file: string): Page | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Page
  } catch {
    // None yet, or cut short by a full disk: nothing to go by either way.
    return undefined
  }
}
