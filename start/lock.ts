import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { identityOf, isRunning } from './process-table.ts'

interface Holder {
  pid: number
  identity: string
}

/**
 * Takes the lock file for this process. Returns a function that releases the lock, or the pid of
 * the running process that holds the lock. Takes over the lock of a dead process.
 */
export function takeLock(file: string): { release(): void } | { heldBy: number } {
  const mine: Holder = { pid: process.pid, identity: identityOf(process.pid) ?? '' }
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 })
  try {
    for (;;) {
      try {
        // Makes a hard link, which is complete or absent, so that nobody reads a half-written lock.
        linkSync(draft, file)
        return { release: () => release(file, mine) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = readHolder(file)
      if (holder && isRunning(holder.pid, holder.identity)) return { heldBy: holder.pid }
      const other = moveAside(file, `${draft}.stale`)
      if (other) return { heldBy: other.pid }
    }
  } finally {
    rmSync(draft, { force: true })
  }
}

/**
 * Removes the lock of a dead process. If a running process took the lock in the meantime, restores
 * its lock and returns the process.
 */
function moveAside(file: string, aside: string): Holder | undefined {
  try {
    renameSync(file, aside)
  } catch {
    return undefined
  }
  const holder = readHolder(aside)
  const living = holder && isRunning(holder.pid, holder.identity) ? holder : undefined
  if (living) linkSync(aside, file)
  rmSync(aside)
  return living
}

function release(file: string, mine: Holder): void {
  const holder = readHolder(file)
  if (holder?.pid === mine.pid && holder.identity === mine.identity) rmSync(file, { force: true })
}

function readHolder(file: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Holder
  } catch {
    return undefined
  }
}
