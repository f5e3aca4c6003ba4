import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bootId, startTicksOf } from './members.ts'

/** One agent per state directory: two would tear the journal's chain. Throws when another one holds it; answers its release. */
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
