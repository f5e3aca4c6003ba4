import { readFileSync } from 'node:fs'

/** The most memory that the processes begun by this one were seen to hold together, in MiB, until it is stopped. */
export function watchChildren(everyMs = 50): { stop(): number } {
  let most = 0
  const timer = setInterval(() => {
    most = Math.max(most, descendants(process.pid).reduce((sum, pid) => sum + residentKib(pid), 0) / 1_024)
  }, everyMs)
  return {
    stop() {
      clearInterval(timer)
      return Math.round(most)
    },
  }
}

function descendants(pid: number): number[] {
  const own = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
  return own.flatMap((child) => [child, ...descendants(child)])
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // It has ended in this moment.
    return ''
  }
}
