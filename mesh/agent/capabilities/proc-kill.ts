import { z } from 'zod'
import type { DeviceCapability } from '../capability.ts'
import { lineage, type Process, processOf } from '../processes.ts'
import { answered, errnoOf, Refused } from '../refused.ts'
import { lacksProcesses } from './proc-list.ts'

const args = z.strictObject({
  pid: z.number().int().min(1).max(4_194_304),
  /** As `proc.list` told it: another process that has the pid by now is left alone. */
  start_time: z.string().regex(/^\d{1,20}$/, 'is no start time'),
  signal: z.enum(['TERM', 'KILL', 'HUP', 'INT']).default('TERM'),
})
type Args = z.infer<typeof args>

const watchMs = 2_000

/**
 * Sends one signal to one process: `{ pid, name, signal, ended }`, where `ended` says whether it was gone within two seconds. The
 * start time is read again right before. Node has no pidfd, so one race remains: the process ends and its pid is given to a new
 * one in the microseconds between that look and the signal, which takes a whole round of all pids.
 */
export const procKill: DeviceCapability<Args> = {
  capability: 'proc.kill',
  args,
  lacks: lacksProcesses,
  weigh: ({ pid, signal }) => {
    const never = neverKilled(pid)
    if (never) return { effect: 'refused', reason: never, command: null }
    return { effect: 'write', reason: `sends SIG${signal} to process ${pid}`, command: null }
  },
  run: ({ pid, start_time, signal }, context) =>
    answered(context.signal, async () => {
      const never = neverKilled(pid)
      if (never) throw new Refused('blocked', never)
      const found = await processOf(pid)
      if (!found) throw new Refused('not_found', `there is no process ${pid}`)
      if (found.kernel_thread) throw new Refused('blocked', `${pid} is a thread of the kernel`)
      if (found.state === 'Z') throw new Refused('conflict', `${pid} has ended already and waits for its parent`)
      if (found.start_time !== start_time) {
        throw new Refused('conflict', `${pid} is another process now: ${found.name}, started at ${found.start_time}`)
      }
      send(found, signal)
      const ended = await endsWithin(found, context.signal)
      return { ok: true, result: { pid, start_time, name: found.name, signal, ended }, truncated: false }
    }),
}

/** Told from the number alone: the machine's first process, the agent, and all that the agent descends from. */
function neverKilled(pid: number): string | null {
  if (pid === 1) return 'process 1 is never signalled'
  if (pid === process.pid) return `${pid} is the agent itself`
  return lineage().includes(pid) ? `the agent runs below process ${pid}` : null
}

function send({ pid, name }: Process, signal: Args['signal']): void {
  try {
    process.kill(pid, `SIG${signal}`)
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ESRCH') throw new Refused('not_found', `there is no process ${pid}`)
    if (code === 'EPERM') throw new Refused('failed', `the agent may not signal ${pid} (${name})`)
    throw error
  }
}

/** A zombie has ended: that its parent has not looked is the parent's fault. A cancel ends the watching, not the answer. */
async function endsWithin({ pid, start_time }: Process, signal: AbortSignal): Promise<boolean> {
  const until = performance.now() + watchMs
  for (;;) {
    const now = await processOf(pid)
    if (!now || now.start_time !== start_time || now.state === 'Z') return true
    if (performance.now() >= until || signal.aborted) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
