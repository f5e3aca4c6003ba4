import { access, readFile } from 'node:fs/promises'
import type { z } from 'zod'
import { stripText } from '../../../safety/redact.ts'
import { procKillArgs, procListArgs } from '../../specs/host.ts'
import {
  type CapabilityContext,
  CapabilityError,
  type CapabilityOutcome,
  type DeviceCapability,
  errnoOf,
  toOutcome,
} from '../capability.ts'
import {
  bootSeconds,
  describeProcess,
  enclosureOf,
  formatProcess,
  processFacts,
  shownCommand,
  standingOf,
  startOf,
  userNames,
  whyElsewhere,
  whyNeverSignalled,
} from '../process-facts.ts'
import { type Process, pids, processOf, statusField } from '../programs.ts'
import { reportOutcome, restsOnLines } from '../rehearsal-report.ts'
import { type Socket, socketsAt, socketsHeldBy } from '../sockets.ts'

type Args = z.infer<typeof procListArgs>

/** Milliseconds between the two samples of a process's CPU time. */
const sampleMs = 400
/** The most sockets that are shown per process, listening ones first. */
const shownSockets = 5

type Described = NonNullable<Awaited<ReturnType<typeof described>>>
type Found = Described & { lookedAtMs: number; sockets?: ShownSocket[] }
type ShownSocket = Pick<Socket, 'protocol' | 'local' | 'remote' | 'state'>

/**
 * Lists this device's processes, the busiest first: `{ processes, total, left_out, left_out_in }`.
 * Leaves out and counts processes of containers and guests, to which `proc.kill` sends no signals.
 * With `port` also `sockets_unseen`: sockets of processes that the agent may not read. Secrets are
 * removed from command lines.
 */
const listProcesses = (args: Args, { signal }: CapabilityContext): Promise<CapabilityOutcome> =>
  toOutcome(signal, async () => {
    const sockets = args.port === undefined ? null : await socketsAt(args.port)
    const { found, leftOut, held } = await find(args, sockets, signal)
    await rest(found, signal)
    const shares = await Promise.all(found.map(withShare))
    shares.sort((a, b) => b.cpu_percent - a.cpu_percent || b.cpu_seconds - a.cpu_seconds || a.pid - b.pid)
    const result = {
      processes: shares.slice(0, args.limit),
      total: shares.length,
      left_out: leftOut.length,
      ...(leftOut.length > 0 && { left_out_in: [...new Set(leftOut)].slice(0, 10) }),
      ...(sockets && { sockets_unseen: await unseen(sockets, held) }),
    }
    return { ok: true, result, truncated: shares.length > args.limit }
  })

async function find({ name }: Args, sockets: Socket[] | null, signal: AbortSignal) {
  const users = await userNames()
  const boot = await bootSeconds()
  const own = standingOf(process.pid)
  const byInode = new Map((sockets ?? []).map((each) => [each.inode, each]))
  const inodes = new Set(byInode.keys())
  const found: Found[] = []
  const leftOut: string[] = []
  const held = new Set<string>()
  for (const pid of await pids()) {
    signal.throwIfAborted()
    const here = sockets ? await socketsHeldBy(pid, inodes) : []
    for (const inode of here ?? []) held.add(inode)
    if (sockets && !here?.length) continue
    const one = await described(pid, users, boot)
    if (!one || (name !== undefined && !one.name.includes(name) && !one.cmdline.includes(name))) continue
    const standing = standingOf(pid)
    if (standing && own && whyElsewhere(standing, own) !== null) {
      leftOut.push(plain(enclosureOf(standing.cgroups) ?? 'another PID namespace').slice(0, 80))
      continue
    }
    const mine = sockets && { sockets: toShownSockets((here ?? []).flatMap((inode) => byInode.get(inode) ?? [])) }
    found.push({ ...one, ...mine, lookedAtMs: performance.now() })
  }
  return { found, leftOut, held }
}

const isListening = ({ state }: ShownSocket) => state === 'listen' || state === 'bound'

function toShownSockets(sockets: Socket[]): ShownSocket[] {
  return sockets
    .map(({ protocol, local, remote, state }) => ({ protocol, local, remote, state }))
    .sort((a, b) => Number(isListening(b)) - Number(isListening(a)))
    .slice(0, shownSockets)
}

/** Waits for the remaining sample time, counted from the first process. */
async function rest([first]: Found[], signal: AbortSignal): Promise<void> {
  if (!first) return
  const left = sampleMs - (performance.now() - first.lookedAtMs)
  // Waits the full time only for the first process. The last of many gets a little less.
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
  signal.throwIfAborted()
}

/** Adds the CPU share of a process in percent of one CPU. A process on two busy CPUs has 200. */
async function withShare({ lookedAtMs, ...one }: Found) {
  const now = await processOf(one.pid)
  const seconds = (performance.now() - lookedAtMs) / 1_000
  const isSame = now?.start_time === one.start_time
  const used = isSame && now ? now.cpu_seconds - one.cpu_seconds : 0
  return { ...one, cpu_percent: Math.max(0, Math.round((used / Math.max(seconds, 0.01)) * 100)) }
}

/**
 * Lists sockets whose process was not found, with the user. Leaves out TIME_WAIT without process.
 */
async function unseen(sockets: Socket[], held: ReadonlySet<string>) {
  const users = await userNames()
  const left = sockets.filter(({ inode }) => inode !== '0' && !held.has(inode))
  const told = left.map((each) => ({ ...each, user: users.get(each.uid) ?? each.uid }))
  return {
    total: told.length,
    first: told
      .sort((a, b) => Number(isListening(b)) - Number(isListening(a)))
      .slice(0, shownSockets)
      .map(({ protocol, local, remote, state, user }) => ({ protocol, local, remote, state, user })),
  }
}

async function described(pid: number, users: ReadonlyMap<string, string>, boot: number | null) {
  const process = await processOf(pid)
  if (!process) return null
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, -1)
    const uid = statusField(status, 'Uid')?.split(/\s/)[0] ?? ''
    const { kernel_thread, ...rest } = process
    return {
      ...rest,
      name: plain(rest.name),
      started: startOf(process.start_time, boot),
      user: users.get(uid) ?? uid,
      kernel_thread,
      rss_bytes: Number(statusField(status, 'VmRSS')?.split(' ')[0] ?? 0) * 1024,
      cmdline: shownCommand(words),
    }
  } catch {
    // Returns null for a process that ended during the read.
    return null
  }
}

const plain = (text: string) => stripText(text, { keepNewlines: false })

type KillArgs = z.infer<typeof procKillArgs>

const watchMs = 2_000

/**
 * Sends one signal to one process of this device: `{ pid, name, signal, ended }`. `ended` is
 * whether the process was gone within two seconds. Reads the start time again right before the
 * signal. One race remains, because Node has no pidfd: the process may end, and another may get its
 * pid, in the microseconds before the signal. All pids would have to be used up in this time. The
 * dry run describes the process, and the approval is valid only for this process.
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
      // Leaves out the command line, which some programs use to show their status.
      const rests = restsOnLines([found.start_time, found.name, user, service ?? ''])
      const untried = [`The effect of SIG${asked.signal} is known only after the signal.`]
      const about = describeProcess(facts!)
      return reportOutcome({ told: formatProcess(facts!), untried, rests, tried: false, about })
    }),
}

/**
 * Returns the process if it has the requested start time and may get a signal. Otherwise throws the
 * reason.
 */
function requireSameProcess({ pid, start_time }: KillArgs, found: Process | null): Process {
  const never = whyNeverSignalled(pid)
  if (never) throw new CapabilityError('blocked', never)
  if (!found) throw new CapabilityError('not_found', `there is no process ${pid}`)
  if (found.kernel_thread) throw new CapabilityError('blocked', `${pid} is a kernel thread`)
  if (found.state === 'Z')
    throw new CapabilityError('conflict', `${pid} has ended already, and its parent has not reaped it`)
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
 * Returns whether the process ended within two seconds. A zombie counts as ended, although its
 * parent has not reaped it. A cancellation ends the wait, but a response is still sent.
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
  weigh: () => ({ effect: 'read', reason: 'only reads', command: null }),
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
