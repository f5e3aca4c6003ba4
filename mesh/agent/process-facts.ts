import { readFile } from 'node:fs/promises'
import { redactJson } from '../../safety/redact.ts'
import { stripText } from '../../safety/strip.ts'
import { type Process, processOf, statusField } from './processes.ts'
import { enclosureOf, standingOf, unitOf } from './scope.ts'

/** Ticks of /proc for user space. */
const ticksPerSecond = 100
const longestCommand = 500

/** What a person wants to know of a process before it is signalled. */
export type ProcessFacts = {
  process: Process
  user: string
  /** Without its secrets. */
  command: string
  /** When it started, as a time of day in UTC; null where the machine does not say when it started itself. */
  startedAt: string | null
  /** The unit of systemd it belongs to, else its control group; null where neither is told. */
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
      startedAt: await startedAt(process.start_time),
      service: unitOf(standing.cgroups) ?? enclosureOf(standing.cgroups) ?? groupOf(standing.cgroups),
    }
  } catch {
    return null
  }
}

/** As words first, since `-p secret` is one only beside its flag. */
export function shownCommand(words: readonly string[]): string {
  const text = stripText(redactJson([...words], stripText).join(' '), { keepNewlines: false })
  return text.length > longestCommand ? `${text.slice(0, longestCommand).toWellFormed()}…` : text
}

export async function userNames(): Promise<Map<string, string>> {
  const text = await readFile('/etc/passwd', 'utf8').catch(() => '')
  return new Map(text.split('\n').map((line): [string, string] => [line.split(':')[2] ?? '', line.split(':')[0]!]))
}

/** The kernel counts from the start of the machine, which it tells in seconds of the epoch. */
async function startedAt(ticks: string): Promise<string | null> {
  const boot = /^btime (\d+)$/m.exec(await readFile('/proc/stat', 'utf8').catch(() => ''))?.[1]
  if (boot === undefined) return null
  return new Date((Number(boot) + Number(ticks) / ticksPerSecond) * 1_000).toISOString().slice(0, 19).replace('T', ' ')
}

function groupOf(cgroups: readonly string[]): string | null {
  const path = cgroups.find((each) => each.startsWith('0::'))?.slice('0::'.length)
  return path && path !== '/' ? stripText(path, { keepNewlines: false }).slice(0, 200) : null
}

/** The same as lines for a person. */
export function tellProcess({
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
