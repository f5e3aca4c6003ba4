import { readdirSync, readFileSync } from 'node:fs'

/**
 * CPU seconds of this process, its threads and started processes, from now on. A killed process
 * lacks its last milliseconds; the kernel's count of reaped children is used where it is more.
 */
export function watchCpu(everyMs = 20): { stop(): number } {
  const began = process.cpuUsage()
  const reaped = readReapedSeconds()
  const seen = new Map<number, number>()
  const before = new Set(listDescendants(process.pid))
  const first = new Map([...before].map((pid) => [pid, readSeconds(pid)]))
  const look = () => {
    for (const pid of listDescendants(process.pid)) seen.set(pid, Math.max(seen.get(pid) ?? 0, readSeconds(pid)))
  }
  const timer = setInterval(look, everyMs)
  return {
    stop() {
      look()
      clearInterval(timer)
      const { user, system } = process.cpuUsage(began)
      const others = [...seen].reduce((sum, [pid, seconds]) => sum + seconds - (first.get(pid) ?? 0), 0)
      return (user + system) / 1e6 + Math.max(others, readReapedSeconds() - reaped)
    },
  }
}

export function listDescendants(pid: number): number[] {
  const own = list(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  )
  return own.flatMap((child) => [child, ...listDescendants(child)])
}

/** In all threads that it has, to the nanosecond. */
function readSeconds(pid: number): number {
  const threads = list(`/proc/${pid}/task`)
  return (
    threads.reduce((sum, thread) => sum + Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] || 0), 0) /
    1e9
  )
}

/** CPU time of ended children and theirs; a tick is a hundredth. */
function readReapedSeconds(): number {
  const fields = read('/proc/self/stat').split(') ').at(-1)?.split(' ') ?? []
  return (Number(fields[13] ?? 0) + Number(fields[14] ?? 0)) / 100
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // It has ended in this moment.
    return ''
  }
}
