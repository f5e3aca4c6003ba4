import { readFileSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { redactJson, stripText } from '../../safety/redact.ts'
import { markerName } from './agent-processes.ts'
import { ownAncestors, type Process, processOf, readStat, statusField } from './programs.ts'

/** Ticks of /proc for user space. */
const ticksPerSecond = 100
const maxCommandCharacters = 500

/** What a person wants to know of a process before it is signalled. */
type ProcessFacts = {
  process: Process
  user: string
  /** Without its secrets. */
  command: string
  /**
   * When it started, as a time of day in UTC; null where the machine does not say when it started
   * itself.
   */
  startedAt: string | null
  /** The unit of systemd it belongs to, else its control group; null where neither is known. */
  service: string | null
}

/** Null when there is no such process. */
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

/** As words first, since `-p secret` is one only beside its flag. */
export function shownCommand(words: readonly string[]): string {
  const text = stripText(redactJson([...words], stripText).join(' '), { keepNewlines: false })
  return text.length > maxCommandCharacters ? `${text.slice(0, maxCommandCharacters).toWellFormed()}…` : text
}

export const userNames = (): Promise<Map<string, string>> => namesById('/etc/passwd')
export const groupNames = (): Promise<Map<string, string>> => namesById('/etc/group')

/** The first line of a number counts, as for the system itself. */
async function namesById(file: string): Promise<Map<string, string>> {
  const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').reverse()
  return new Map(lines.map((line): [string, string] => [line.split(':')[2] ?? '', line.split(':')[0]!]))
}

/** When the machine started, in seconds since 1970; null where it does not say. */
export async function bootSeconds(): Promise<number | null> {
  const boot = /^btime (\d+)$/m.exec(await readFile('/proc/stat', 'utf8').catch(() => ''))?.[1]
  return boot === undefined ? null : Number(boot)
}

/** A process' start, as `2026-11-23T17:25:40Z`: the kernel counts from the machine's start. */
export function startOf(ticks: string, boot: number | null): string | null {
  if (boot === null) return null
  return `${new Date((boot + Number(ticks) / ticksPerSecond) * 1_000).toISOString().slice(0, 19)}Z`
}

function groupOf(cgroups: readonly string[]): string | null {
  const path = cgroups.find((each) => each.startsWith('0::'))?.slice('0::'.length)
  return path && path !== '/' ? stripText(path, { keepNewlines: false }).slice(0, 200) : null
}

/** The same as lines for a person. */
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

/** `report-export (pid 7371, running since 2026-11-25 10:50:12 UTC)`. */
export function describeProcess({ process: { pid, name }, startedAt }: ProcessFacts): string {
  const since = startedAt === null ? '' : `, running since ${startedAt} UTC`
  return `${stripText(name, { keepNewlines: false })} (pid ${pid}${since})`
}

/**
 * Which processes are the device's own to signal. A machine's table of processes also shows what
 * runs in its containers and guests, and Nightshift itself: a call that names the machine means
 * none of these.
 */

/** A process as the kernel files it. */
export type ProcessScope = {
  /** Its control groups, one line each, as /proc shows them. */
  cgroups: readonly string[]
  /** Its number in each namespace of processes, from that of the reader inwards. */
  numbers: readonly string[]
  /** The namespace itself, where the agent may ask; else null. */
  namespace: string | null
  words: readonly string[]
  name: string
}

/**
 * `/docker/<id>`, `docker-<id>.scope`, `kubepods…`, and the same of other engines, of LXC, nspawn
 * and virtual machines.
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

/** The container or guest that a control group belongs to; null for the machine's own. */
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

/**
 * The systemd unit of a process, the innermost where units hold units; null where it is in none.
 */
export function unitOf(cgroups: readonly string[]): string | null {
  const line = cgroups.find((each) => each.startsWith('0::')) ?? cgroups.find((each) => each.includes(':name=systemd:'))
  const parts = (line ?? '').split(':').slice(2).join(':').split('/')
  return parts.findLast((part) => /\.(?:service|scope)$/.test(part)) ?? null
}

/** Programs that a checkout, a package and an image start. */
const ownPrograms = ['cli/main', 'api/main', 'worker/main', 'mesh/agent/main']
const installed = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Is this the command line, or the unit, of Nightshift itself: a worker, the core API, another
 * device's agent?
 */
export function isNightshift({ words, cgroups }: Pick<ProcessScope, 'words' | 'cgroups'>): boolean {
  if (/^nightshift(?:[-@][\w@.-]*)?\.service$/.test(unitOf(cgroups) ?? '')) return true
  const [program = '', ...rest] = words
  // Under Node the program is the first word that is no option.
  const entry = /^node(?:js)?$/.test(basename(program)) ? (rest.find((word) => !word.startsWith('-')) ?? '') : program
  return (
    /(?:^|\/)nightshift(?:\.js)?$/.test(entry) ||
    ownPrograms.some((program) => entry === `${installed}${program}.ts` || entry === `${installed}${program}.js`) ||
    /\/nightshift(?:\/[\w.-]+)?\/(?:lib\/)?(?:cli|api|worker|mesh\/agent)\/main\.[tj]s$/.test(entry)
  )
}

/** Servers that the embedded start brings up beside itself. */
const embedded = new Set(['postgres', 'temporal', 'temporal-server'])

/** Why a process is not the device's own to signal, in words; null when it is. */
export function whyOutside(found: ProcessScope, own: ProcessScope): string | null {
  return whyElsewhere(found, own) ?? (isNightshift(found) ? 'is one of the services of Nightshift' : null)
}

/**
 * The reason why a process belongs to a container, guest or other process namespace, in words; null
 * for the device's own.
 */
export function whyElsewhere(found: ProcessScope, own: ProcessScope): string | null {
  const enclosure = enclosureOf(found.cgroups)
  if (enclosure !== null && enclosure !== enclosureOf(own.cgroups))
    return `belongs to ${enclosure.slice(0, 40)}, a container or guest on this device: ask for it there`
  const elsewhere = found.namespace !== null && own.namespace !== null && found.namespace !== own.namespace
  if (elsewhere || found.numbers.length > 1)
    return 'lives in another namespace of processes, as those of containers do: ask for it there'
  return null
}

/**
 * The same of a number, as things stand now. Null for a process that is not there: the signal finds
 * that out.
 */
export function whyNeverSignalled(pid: number): string | null {
  if (pid === 1) return 'process 1 is never signalled'
  if (pid === process.pid) return `${pid} is the agent itself`
  if (ownAncestors().includes(pid)) return `the agent runs below process ${pid}`
  const found = standingOf(pid)
  const own = standingOf(process.pid)
  if (!found || !own) return null
  const outside = whyOutside(found, own)
  if (outside !== null) return `process ${pid} ${outside}`
  if (carriesMarker(pid) && above(pid).includes(process.pid))
    return `process ${pid} belongs to a call that the agent is doing: cancel that call`
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
    // Another user's: its numbers have to do.
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

/** Processes that it descends from, without itself and process 1. */
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
 * What an agent starts carries its mark. A daemon that a call left behind carries it, too, and does
 * not belong to a call.
 */
function carriesMarker(pid: number): boolean {
  return textOf(`/proc/${pid}/environ`)
    .split('\0')
    .some((each) => each.startsWith(`${markerName}=`))
}
