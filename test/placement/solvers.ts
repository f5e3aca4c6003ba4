import { readdirSync, readFileSync } from 'node:fs'

/** The processes that a thread of this one began. */
export function listSolvers(): number[] {
  return readdirSync(`/proc/${process.pid}/task`).flatMap((thread) => {
    try {
      const children = readFileSync(`/proc/${process.pid}/task/${thread}/children`, 'utf8').trim().split(' ')
      return children.filter((pid) => isSolver(pid)).map(Number)
    } catch {
      // The thread ended in this moment.
      return []
    }
  })
}

function isSolver(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('solver-process.ts')
  } catch {
    return false
  }
}
