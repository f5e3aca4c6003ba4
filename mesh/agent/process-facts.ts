import { readFileSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redactJson, stripText } from '../../safety/redact.ts'
import { markerName } from './agent-processes.ts'
import { ownAncestors, type Process, processOf, readStat, statusField } from './programs.ts'

/** Clock ticks per second of /proc. */
const ticksPerSecond = 100
const maxCommandCharacters = 500

/** Facts about a process that a person sees before it gets a signal. */
type ProcessFacts = {
  process: Process
  user: string
  /** The command line, without secrets. */
  command: string
  /** The start of the process in UTC. Null if the start of the machine is unknown. */
  startedAt: string | null
  /** The systemd unit of the process, or else its control group. Null if neither is known. */
  service: string | null
}

/** Reads the facts about a process. Null for a process that does not exist or ends meanwhile. */
export async function processFacts(pid: number): Promise<ProcessFacts | null> {
  const process = await processOf(pid)
  const standing = standingOf(pid)
  if (!process || !standing) return null
  try {
    const status = await readFile(`/proc/${pid}/status`, 'utf8')
    const uid = statusField(status, 'Uid')?.split(/\s/)[0] ?? ''
    return {
      process,
      user: (await userNames()).get(uid) ?? uid,
      command: shownCommand(standing.words),
      startedAt:
        startOf(process.start_time, await bootSeconds())
          ?.slice(0, 19)
          .replace('T', ' ') ?? null,
      service: unitOf(standing.cgroups) ?? enclosureOf(standing.cgroups) ?? groupOf(standing.cgroups),
    }
  } catch {
    return null
  }
}

/**
 * Redacts the arguments before they are joined, because the argument after `-p` is a secret only
 * beside its flag.
 */
export function shownCommand(words: readonly string[]): string {
  const text = stripText(redactJson([...words], stripText).join(' '), { keepNewlines: false })
  return text.length > maxCommandCharacters ? `${text.slice(0, maxCommandCharacters).toWellFormed()}…` : text
}

export const userNames = (): Promise<Map<string, string>> => namesById('/etc/passwd')
export const groupNames = (): Promise<Map<string, string>> => namesById('/etc/group')

/**
 * Reads the names in a user list or group list, by number. The first line with a number counts, as
 * for the system itself.
 */
async function namesById(file: string): Promise<Map<string, string>> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').reverse()
  return new Map(lines.map((line): [string, string] => [line.split(':')[2] ?? '', line.split(':')[0]!]))
}

/** Returns the start of the machine in seconds since 1970. Null for an unknown start. */
export async function bootSeconds(): Promise<number | null> {
  const boot = /^btime (\d+)$/m.exec(await readFile('/proc/stat', 'utf8').catch(() => ''))?.[1]
  return boot === undefined ? null : Number(boot)
}

/**
 * Formats the start time of a process, such as `2026-11-23T17:25:40Z`. `ticks` are counted from the
 * machine's start.
 */
export function startOf(ticks: string, boot: number | null): string | null {
  if (boot === null) return null
  return `${new Date((boot + Number(ticks) / ticksPerSecond) * 1_000).toISOString().slice(0, 19)}Z`
}

function groupOf(cgroups: readonly string[]): string | null {
  const path = cgroups.find((each) => each.startsWith('0::'))?.slice('0::'.length)
  return path && path !== '/' ? stripText(path, { keepNewlines: false }).slice(0, 200) : null
}

/** Formats the facts about a process as lines for a person. */
export function formatProcess({
  process: { pid, name, ppid },
  user,
  command,
  startedAt,
  service,
}: ProcessFacts): string[] {
  return [
    `process ${pid} (${stripText(name, { keepNewlines: false })}) of user ${user}, below process ${ppid}`,
    `started: ${startedAt === null ? 'not known' : `${startedAt} UTC`}`,
    `command line: ${command === '' ? '(none)' : command}`,
    `service: ${service ?? 'in no unit of systemd'}`,
  ]
}

/** Formats `report-export (pid 7371, running since 2026-11-25 10:50:12 UTC)`. */
export function describeProcess({ process: { pid, name }, startedAt }: ProcessFacts): string {
  const since = startedAt === null ? '' : `, running since ${startedAt} UTC`
  return `${stripText(name, { keepNewlines: false })} (pid ${pid}${since})`
}

/**
 * Decides to which processes the device may send signals. A machine's process table also lists
 * processes of its containers and guests, and of Nightshift. A call for the machine never means
 * these processes.
 */

/** A process as the kernel lists it. */
export type ProcessScope = {
  /** The control groups of the process, one per line, as in /proc. */
  cgroups: readonly string[]
  /** The pid of the process in each process namespace, from the reader's namespace inwards. */
  numbers: readonly string[]
  /** The process namespace of the process. Null if the agent may not read it. */
  namespace: string | null
  words: readonly string[]
  name: string
}

/**
 * Paths of control groups: `/docker/<id>`, `docker-<id>.scope`, `kubepods…`, and those of other
 * engines, LXC, nspawn and virtual machines.
 */
const enclosures: readonly RegExp[] = [
  /(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:\/|$)/,
  /\/(kubepods[^/]*)(?:\/|$)/,
  /\/lxc(?:\.payload|\.monitor)?[/.]([^/]+)/,
  /\/machine\.slice\/([^/]+)/,
  /\/(machine-[^/]+\.scope)(?:\/|$)/,
  /\/qemu\.slice\/([^/]+)/,
  /\/(garden|ecs|actions_job)\/[^/]+/,
]

/** Returns the container or guest of a process. Null for a process of the machine itself. */
export function enclosureOf(cgroups: readonly string[]): string | null {
  for (const line of cgroups) {
    const path = line.slice(line.indexOf(':', line.indexOf(':') + 1) + 1)
    for (const pattern of enclosures) {
      const found = pattern.exec(path)?.[1]
      if (found !== undefined) return found
    }
  }
  return null
}

/** Returns the innermost systemd unit of a process. Null for a process outside of all units. */
export function unitOf(cgroups: readonly string[]): string | null {
  const line = cgroups.find((each) => each.startsWith('0::')) ?? cgroups.find((each) => each.includes(':name=systemd:'))
  const parts = (line ?? '').split(':').slice(2).join(':').split('/')
  return parts.findLast((part) => /\.(?:service|scope)$/.test(part)) ?? null
}

/** The entry files of Nightshift's programs. */
const ownPrograms = ['cli/main', 'api/main', 'worker/main', 'mesh/agent/main']
const installed = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Whether a process is the command line or a unit of Nightshift itself: a worker, the core API,
 * another device's agent.
 */
export function isNightshift({ words, cgroups }: Pick<ProcessScope, 'words' | 'cgroups'>): boolean {
  if (/^nightshift(?:[-@][\w@.-]*)?\.service$/.test(unitOf(cgroups) ?? '')) return true
  const [program = '', ...rest] = words
  // Under Node, the program is the first word that is not an option.
  const entry = /^node(?:js)?$/.test(basename(program)) ? (rest.find((word) => !word.startsWith('-')) ?? '') : program
  return (
    /(?:^|\/)nightshift(?:\.js)?$/.test(entry) ||
    ownPrograms.some((program) => entry === `${installed}${program}.ts` || entry === `${installed}${program}.js`) ||
    /\/nightshift(?:\/[\w.-]+)?\/(?:lib\/)?(?:cli|api|worker|mesh\/agent)\/main\.[tj]s$/.test(entry)
  )
}

/** Servers that the embedded start of Nightshift also starts. */
const embedded = new Set(['postgres', 'temporal', 'temporal-server'])

/** Returns why the device may not send a signal to a process. Null if a signal is allowed. */
export function whyOutside(found: ProcessScope, own: ProcessScope): string | null {
  return whyElsewhere(found, own) ?? (isNightshift(found) ? 'is one of the services of Nightshift' : null)
}

/**
 * Returns why a process belongs to a container, a guest or another process namespace. Null for a
 * process of the device itself.
 */
export function whyElsewhere(found: ProcessScope, own: ProcessScope): string | null {
  const enclosure = enclosureOf(found.cgroups)
  if (enclosure !== null && enclosure !== enclosureOf(own.cgroups))
    return `belongs to ${enclosure.slice(0, 40)}, a container or guest on this device: send the signal inside it`
  const elsewhere = found.namespace !== null && own.namespace !== null && found.namespace !== own.namespace
  if (elsewhere || found.numbers.length > 1)
    return 'is in another PID namespace, like processes of containers: send the signal inside the container'
  return null
}

/**
 * Returns why a pid may not get a signal now. Null also for a missing process, which the signal
 * detects.
 */
export function whyNeverSignalled(pid: number): string | null {
  if (pid === 1) return 'no signal is sent to process 1'
  if (pid === process.pid) return `${pid} is the agent itself`
  if (ownAncestors().includes(pid)) return `the agent runs below process ${pid}`
  const found = standingOf(pid)
  const own = standingOf(process.pid)
  if (!found || !own) return null
  const outside = whyOutside(found, own)
  if (outside !== null) return `process ${pid} ${outside}`
  if (carriesMarker(pid) && above(pid).includes(process.pid))
    return `process ${pid} belongs to a call that the agent is running: cancel that call`
  if (embedded.has(found.name) && above(pid).some((each) => isNightshift(standingOf(each) ?? nothing)))
    return `process ${pid} is a server that Nightshift runs for itself`
  return null
}

const nothing: ProcessScope = { cgroups: [], numbers: [], namespace: null, words: [], name: '' }

export function standingOf(pid: number): ProcessScope | null {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return {
      cgroups: textOf(`/proc/${pid}/cgroup`).split('\n').filter(Boolean),
      numbers: (statusField(status, 'NSpid') ?? String(pid)).split(/\s+/),
      namespace: namespaceOf(pid),
      words: textOf(`/proc/${pid}/cmdline`).split('\0').filter(Boolean),
      name: basename(statusField(status, 'Name') ?? ''),
    }
  } catch {
    return null
  }
}

function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    // Returns null for a process of another user, of which only the numbers are readable.
    return null
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Lists the ancestors of a process, without the process itself and process 1. */
function above(pid: number): number[] {
  const found: number[] = []
  for (let at = parentOf(pid); at > 1 && !found.includes(at); at = parentOf(at)) found.push(at)
  return found
}

function parentOf(pid: number): number {
  const text = textOf(`/proc/${pid}/stat`)
  return text === '' ? 0 : readStat(text).ppid
}

/**
 * Whether the agent started this process. Every started process has the mark, even a daemon that
 * outlives its call.
 */
function carriesMarker(pid: number): boolean {
  return textOf(`/proc/${pid}/environ`)
    .split('\0')
    .some((each) => each.startsWith(`${markerName}=`))
}
