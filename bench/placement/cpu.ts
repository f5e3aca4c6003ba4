import { readdirSync, readFileSync } from 'node:fs'

/**
 * Measures CPU seconds of this process, its threads and the processes that it starts. Does not
 * measure the last milliseconds of a killed process. Uses the kernel's count of ended child
 * processes if it is larger.
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

/** Reads the CPU time of all threads of a process, to the nanosecond. */
function readSeconds(pid: number): number {
  const threads = list(`/proc/${pid}/task`)
  return (
    threads.reduce((sum, thread) => sum + Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] || 0), 0) /
    1e9
  )
}

/** Reads the CPU seconds of ended child processes and their children. A tick is 0.01 s. */
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
    // Returns an empty text for a process that has just ended.
    return ''
  }
}
