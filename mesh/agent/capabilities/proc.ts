import { access } from 'node:fs/promises'
import type { z } from 'zod'
import { procKillArgs, procListArgs } from '../../specs/proc.ts'
import type { DeviceCapability } from '../capability.ts'
import { CapabilityError, errnoOf, reportOutcome, restsOnLines, toOutcome } from '../outcome.ts'
import { processFacts, tellProcess, whyNeverSignalled } from '../process-facts.ts'
import { type Process, processOf } from '../programs.ts'
import { listProcesses } from './proc-list.ts'

type KillArgs = z.infer<typeof procKillArgs>

const watchMs = 2_000

/**
 * Sends one signal to one process of this device: `{ pid, name, signal, ended }`, where `ended`
 * says whether it was gone within two seconds. The start time is read again right before. Node has
 * no pidfd, so one race remains: the process ends and its pid is given to a new one in the
 * microseconds between that look and the signal, which takes a whole round of all pids. The
 * rehearsal tells what the process is, and rests on its being the same.
 */
export const procKill: DeviceCapability<KillArgs> = {
  capability: 'proc.kill',
  args: procKillArgs,
  missingPrerequisite: missingProcesses,
  weigh: ({ pid, signal }) => {
    const never = whyNeverSignalled(pid)
    if (never) return { effect: 'refused', reason: never, command: null }
    return { effect: 'write', reason: `sends SIG${signal} to process ${pid}`, command: null }
  },
  run: (asked, context) =>
    toOutcome(context.signal, async () => {
      const { pid, start_time, signal } = asked
      const found = requireSameProcess(asked, await processOf(pid))
      send(found, signal)
      const ended = await endsWithin(found, context.signal)
      return { ok: true, result: { pid, start_time, name: found.name, signal, ended }, truncated: false }
    }),
  rehearse: (asked, context) =>
    toOutcome(context.signal, async () => {
      const facts = await processFacts(asked.pid)
      const found = requireSameProcess(asked, facts?.process ?? null)
      const { user, service } = facts!
      // Not on its command line, in which some programs show what they are doing.
      const rests = restsOnLines([found.start_time, found.name, user, service ?? ''])
      const untried = [`What it does with SIG${asked.signal} shows only when it gets it.`]
      return reportOutcome({ told: tellProcess(facts!), untried, rests, tried: false })
    }),
}

/** The process that was named, if it still is that one and may be signalled; throws why not. */
function requireSameProcess({ pid, start_time }: KillArgs, found: Process | null): Process {
  const never = whyNeverSignalled(pid)
  if (never) throw new CapabilityError('blocked', never)
  if (!found) throw new CapabilityError('not_found', `there is no process ${pid}`)
  if (found.kernel_thread) throw new CapabilityError('blocked', `${pid} is a thread of the kernel`)
  if (found.state === 'Z') throw new CapabilityError('conflict', `${pid} has ended already and waits for its parent`)
  if (found.start_time !== start_time)
    throw new CapabilityError(
      'conflict',
      `${pid} is another process now: ${found.name}, started at ${found.start_time}`,
    )
  return found
}

function send({ pid, name }: Process, signal: KillArgs['signal']): void {
  try {
    process.kill(pid, `SIG${signal}`)
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ESRCH') throw new CapabilityError('not_found', `there is no process ${pid}`)
    if (code === 'EPERM') throw new CapabilityError('failed', `the agent may not signal ${pid} (${name})`)
    throw error
  }
}

/**
 * A zombie has ended: that its parent has not looked is the parent's fault. A cancel ends the
 * watching, not the answer.
 */
async function endsWithin({ pid, start_time }: Process, signal: AbortSignal): Promise<boolean> {
  const until = performance.now() + watchMs
  for (;;) {
    const now = await processOf(pid)
    if (!now || now.start_time !== start_time || now.state === 'Z') return true
    if (performance.now() >= until || signal.aborted) return false
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

export const procList: DeviceCapability<z.infer<typeof procListArgs>> = {
  capability: 'proc.list',
  args: procListArgs,
  missingPrerequisite: missingProcesses,
  weigh: () => ({ effect: 'read', reason: 'only looks', command: null }),
  run: listProcesses,
}

export async function missingProcesses(): Promise<string | null> {
  try {
    await access('/proc/self/stat')
    return null
  } catch {
    return '/proc is not mounted'
  }
}

export const procCapabilities = [procList, procKill]
