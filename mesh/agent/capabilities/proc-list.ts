import { readFile } from 'node:fs/promises'
import type { z } from 'zod'
import { stripText } from '../../../safety/strip.ts'
import type { procListArgs } from '../../specs/proc.ts'
import type { CapabilityContext, Outcome } from '../capability.ts'
import { toOutcome } from '../outcome.ts'
import {
  bootSeconds,
  enclosureOf,
  shownCommand,
  standingOf,
  startOf,
  userNames,
  whyElsewhere,
} from '../process-facts.ts'
import { pids, processOf, statusField } from '../programs.ts'
import { heldBy, type Socket, socketsAt } from '../sockets.ts'

type Args = z.infer<typeof procListArgs>

/** A share of a processor is a difference between two looks. */
const sampleMs = 400
/** A server may have thousands of connections: the listening ones first, then some. */
const shownSockets = 5

type Described = NonNullable<Awaited<ReturnType<typeof described>>>
type Found = Described & { lookedAtMs: number; sockets?: ShownSocket[] }
type ShownSocket = Pick<Socket, 'protocol' | 'local' | 'remote' | 'state'>

/**
 * Processes of this device, those that use the most CPU now first: `{ processes, total, left_out, left_out_in }`. Those of containers and
 * guests are left out, as `proc.kill` leaves them alone, and counted. By `port` also `sockets_unseen`: sockets of processes that the agent
 * may not look into. Command lines come without their secrets.
 */
export const listProcesses = (args: Args, { signal }: CapabilityContext): Promise<Outcome> =>
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
    const here = sockets ? await heldBy(pid, inodes) : []
    for (const inode of here ?? []) held.add(inode)
    if (sockets && !here?.length) continue
    const one = await described(pid, users, boot)
    if (!one || (name !== undefined && !one.name.includes(name) && !one.cmdline.includes(name))) continue
    const standing = standingOf(pid)
    if (standing && own && whyElsewhere(standing, own) !== null) {
      leftOut.push(plain(enclosureOf(standing.cgroups) ?? 'another namespace of processes').slice(0, 80))
      continue
    }
    const mine = sockets && { sockets: shown((here ?? []).flatMap((inode) => byInode.get(inode) ?? [])) }
    found.push({ ...one, ...mine, lookedAtMs: performance.now() })
  }
  return { found, leftOut, held }
}

const isListening = ({ state }: ShownSocket) => state === 'listen' || state === 'bound'

function shown(sockets: Socket[]): ShownSocket[] {
  return sockets
    .map(({ protocol, local, remote, state }) => ({ protocol, local, remote, state }))
    .sort((a, b) => Number(isListening(b)) - Number(isListening(a)))
    .slice(0, shownSockets)
}

/** What is left of the sample after the first process was looked at. */
async function rest([first]: Found[], signal: AbortSignal): Promise<void> {
  if (!first) return
  const left = sampleMs - (performance.now() - first.lookedAtMs)
  // A list of one is looked at once more after the whole sample, the last of a long list a little earlier.
  if (left > 0) await new Promise((resolve) => setTimeout(resolve, left))
  signal.throwIfAborted()
}

/** Of one processor: two that are busy make 200. */
async function withShare({ lookedAtMs, ...one }: Found) {
  const now = await processOf(one.pid)
  const seconds = (performance.now() - lookedAtMs) / 1_000
  const isSame = now?.start_time === one.start_time
  const used = isSame && now ? now.cpu_seconds - one.cpu_seconds : 0
  return { ...one, cpu_percent: Math.max(0, Math.round((used / Math.max(seconds, 0.01)) * 100)) }
}

/** Sockets that nobody was found for, with their user; what only waits to be forgotten has no process. */
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
    // It ended between two looks.
    return null
  }
}

const plain = (text: string) => stripText(text, { keepNewlines: false })
