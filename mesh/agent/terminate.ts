import { members } from './members.ts'

const graceMs = 1_000
const roundMs = 20
/** After SIGKILL: what still lives then waits in the kernel, and dies when that lets it go. */
const rounds = 50

/**
 * Ends everything that belongs to a leader: SIGTERM, and SIGKILL after a second for what did not heed it; at once without `gently`.
 * Resolves with how many are still there, which is 0 unless something hangs in the kernel.
 */
export async function terminate(leader: number, marker: string, gently: boolean): Promise<number> {
  if (gently) {
    for (const { pid } of members(leader, marker)) send(pid, 'SIGTERM')
    const until = Date.now() + graceMs
    while (Date.now() < until) {
      await pause(roundMs)
      if (members(leader, marker).length === 0) return 0
    }
  }
  for (let round = 0; round < rounds; round += 1) {
    const left = members(leader, marker)
    if (left.length === 0) return 0
    // Whoever forks faster than it is killed is stopped first, so that it cannot.
    for (const { pid } of left) send(pid, 'SIGSTOP')
    for (const { pid } of left) send(pid, 'SIGKILL')
    await pause(roundMs)
  }
  return members(leader, marker).length
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
