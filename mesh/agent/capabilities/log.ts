import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import type { z } from 'zod'
import { stripText } from '../../../safety/redact.ts'
import { journalLack, type logAmong, logReadArgs, maxLogLines } from '../../specs/host.ts'
import { type CapabilityContext, CapabilityError, type DeviceCapability, toOutcome } from '../capability.ts'
import { isSecret, ownPaths, requirePlace, weighRead } from '../manifest.ts'
import { withNewestLog } from '../newest-log.ts'
import { find, search, whyNotDone } from '../programs.ts'
import { type OpenEntry, openContent, readPart, withEntryAt } from '../walk.ts'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

type Read = { atMs: number | null; rest: string }

/**
 * Times such as `2026-11-23T16:43:06.123+0000`, `2026-11-23 16:43:06,123` or `2026/11/23 16:43:06`,
 * with or without brackets.
 */
const iso = /^\[?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z|UTC|[+-]\d\d:?\d\d)?\]?:?\s*/
/** The time of syslog, `Nov 23 16:43:06`, which has no year. */
const syslog = /^([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d)\s+/
/** The time in access logs, `[23/Nov/2026:16:43:06 +0000]`, which follows the client's address. */
const access = /\[(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d:\d\d:\d\d) ([+-]\d{4})\]\s*/

/**
 * Splits a line into its time and the text. A time without a zone is in this process's zone. A time
 * without a year is in the latest possible year. The time is `null` if the line has none.
 */
export function readLogTime(line: string, nowMs = Date.now()): Read {
  const [isIso, isSyslog, isAccess] = [iso.exec(line), syslog.exec(line), access.exec(line)]
  if (isIso) {
    const [all, year, month, day, time, fraction = '0', zone = ''] = isIso
    const text = `${year}-${month}-${day}T${time}.${fraction.padEnd(3, '0').slice(0, 3)}${toZone(zone)}`
    return toRead(Date.parse(text), line.slice(all.length))
  }
  if (isSyslog) {
    const [all, name = '', day = '', time = ''] = isSyslog
    const of = (year: number) => Date.parse(`${year}-${toMonth(name)}-${day.trim().padStart(2, '0')}T${time}`)
    const year = new Date(nowMs).getFullYear()
    // Allows times up to a day in the future, because clocks differ.
    const atMs = of(year) > nowMs + 86_400_000 ? of(year - 1) : of(year)
    return toRead(atMs, line.slice(all.length))
  }
  if (isAccess) {
    const [all, day, name = '', year, time, zone = ''] = isAccess
    return toRead(Date.parse(`${year}-${toMonth(name)}-${day}T${time}${toZone(zone)}`), line.replace(all, ''))
  }
  return { atMs: null, rest: line }
}

const toMonth = (name: string) => String(months.indexOf(name) + 1).padStart(2, '0')
const toZone = (zone: string) => (zone === 'UTC' ? 'Z' : zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2'))
const toRead = (atMs: number, rest: string): Read => (Number.isNaN(atMs) ? { atMs: null, rest } : { atMs, rest })

type Args = z.infer<typeof logReadArgs>
type Line = [atMs: number | null, text: string]

/** Number of bytes at the end of a file that are read for its newest lines. */
const maxBytes = 2 * 1024 * 1024
const maxLineCharacters = 500

/**
 * Reads the newest lines of a service's journal or a file, oldest first: `{ lines: [[ms, text]],
 * until_ms, more, among }`. Reads the newest file of a directory, and `among` lists the directory's
 * files. Reads twice the requested time. A file is read by the rules of `fs.read`, a journal with
 * the agent's rights in the sandbox of reads.
 */
export const logReadBy = (journalctl: readonly string[] | undefined): DeviceCapability<Args> => ({
  capability: 'log.read',
  args: logReadArgs,
  missingPrerequisite: async () => null,
  async lacks() {
    const lack = await findJournalLack(journalctl)
    const lacks: Record<string, string> = lack === null ? {} : { [journalLack]: lack }
    return lacks
  },
  weigh({ path }, manifest) {
    if (path === undefined) return { effect: 'read', reason: 'only reads', command: null }
    const weight = weighRead(path, manifest)
    if (weight.effect !== 'write') return weight
    return { ...weight, effect: 'refused', reason: 'a secret file is not a log' }
  },
  run: (args, context) =>
    toOutcome(context.signal, async () => {
      if ((args.unit === undefined) === (args.path === undefined))
        throw new CapabilityError('invalid_arguments', 'give either a unit or a path')
      const nowMs = Date.now()
      const fromMs = nowMs - 2 * args.since_seconds * 1_000
      const found =
        args.unit === undefined ? await fromFile(args, context) : await fromJournal(args, fromMs, journalctl, context)
      const timed = carryTimes(found.lines).filter(([atMs]) => atMs === null || atMs >= fromMs)
      const wanted = timed.filter(([, text]) => args.contains.every((each) => text.includes(each)))
      const lines = keepNewest(wanted.slice(-maxLogLines).map(cutLine), context.manifest.limits.output_bytes)
      // Counts a cut file as incomplete only if its part is newer than the requested time.
      const isMissing = found.isCut && timed.length === found.lines.length
      const more = wanted.length > lines.length || isMissing
      const result = { lines, until_ms: found.untilMs, more, ...(found.among && { among: found.among }) }
      return { ok: true, result, truncated: more }
    }),
})

/**
 * `among`: the file of a directory that was read, and the directory's newest files. Absent for a
 * single file or unit.
 */
type Found = { lines: Line[]; untilMs: number; isCut: boolean; among?: z.infer<typeof logAmong> }

async function fromJournal(
  { unit }: Args,
  fromMs: number,
  journalctl: readonly string[] | undefined,
  { run }: CapabilityContext,
): Promise<Found> {
  const program = programOf(journalctl)
  if (program === null) throw new CapabilityError('capability_unavailable', `${notHere}: give a path`)
  // Runs without --quiet, so that journalctl reports on standard error which journals it may not
  // see. It still exits with 0.
  const words = [
    ...['--no-pager', '--utc', '--output=short-iso', `--lines=${maxLogLines}`],
    `--since=@${Math.floor(fromMs / 1_000)}`,
  ]
  const ran = await run([...program, ...words, `--unit=${unit}`], { confine: 'read', env })
  const lines = toLines(ran.stdout.replace(remarks, ''))
  const hidden = sayHidden(ran.stderr)
  if (hidden !== null && lines.length === 0) throw new CapabilityError('capability_unavailable', hidden)
  const why = ran.stoppedBy === 'output' ? null : whyNotDone('journalctl', ran)
  if (why && !why.ok) throw new CapabilityError(why.code, why.message)
  return {
    lines,
    untilMs: Date.now(),
    isCut: ran.stoppedBy === 'output' || hidden !== null || lines.length >= maxLogLines,
  }
}

const env = { LC_ALL: 'C', TZ: 'UTC' }
const notHere = 'journalctl is not installed'
const programOf = (given: readonly string[] | undefined): readonly string[] | null => {
  const found = find('journalctl')
  return given ?? (found === null ? null : [found])
}

/** Remarks that journalctl writes between lines: `-- No entries --`, `-- Boot 1c… --`. */
const remarks = /^-- .* --$/gm

const hints = /^.*(?:not seeing messages from|No journal files were|insufficient permissions|Permission denied).*$/im

/** Returns the journals that journalctl may not read, with the remedy. Null if it reports none. */
function sayHidden(stderr: string): string | null {
  const [hint] = hints.exec(stderr) ?? []
  if (hint === undefined) return null
  const said = stripText(hint.trim(), { keepNewlines: false }).slice(0, 200)
  return `the journal cannot be read (${said}): add the agent's user, ${userInfo().username}, to the group systemd-journal and start the agent again, or give the path of a log file`
}

/**
 * Finds out at the start why no journal can be read. During an incident the empty result would look
 * like a journal without lines.
 */
async function findJournalLack(given: readonly string[] | undefined): Promise<string | null> {
  const program = programOf(given)
  if (program === null) return notHere
  const [name = '', ...words] = [...program, '--no-pager', '--lines=1']
  const options = { env: { PATH: search.join(':'), ...env }, timeout: 5_000 }
  return await new Promise((resolve) => {
    execFile(name, words, options, (_, __, stderr) => resolve(sayHidden(String(stderr))))
  })
}

/** Reads a file, or the newest file of a directory. */
async function fromFile({ path = '' }: Args, { manifest, state, hidden, signal }: CapabilityContext): Promise<Found> {
  return await withEntryAt(requirePlace(path, manifest, { state, hidden }, 'look'), async (held) => {
    if (!held.stat.isDirectory()) return await readFile(held, signal)
    return await withNewestLog(held, { isOwn: ownPaths({ state, hidden }), signal }, async (newest) => {
      const { files, total } = newest
      const among = { file: stripText(newest.held.path, { keepNewlines: false }), files, total }
      return { ...(await readFile(newest.held, signal)), among }
    })
  })
}

async function readFile(held: OpenEntry, signal: AbortSignal): Promise<Found> {
  if (isSecret(held.path)) throw new CapabilityError('blocked', 'a secret file is not a log')
  const file = await openContent(held)
  try {
    const { size, mtimeMs } = await file.stat()
    const from = Math.max(0, size - maxBytes)
    const text = (await readPart(file, from, maxBytes, signal)).toString('utf8')
    // Drops the first line of a part, because the part begins in the middle of the line.
    const lines = toLines(from > 0 ? text.slice(text.indexOf('\n') + 1) : text)
    return { lines, untilMs: Math.round(mtimeMs), isCut: from > 0 }
  } finally {
    await file.close()
  }
}

function toLines(text: string): Line[] {
  return text.split('\n').flatMap((line): Line[] => {
    if (line.trim() === '') return []
    const { atMs, rest } = readLogTime(line)
    return [[atMs, stripText(rest, { keepNewlines: false })]]
  })
}

/** Cuts a line. Used after the search, which needs the complete line. */
const cutLine = ([atMs, text]: Line): Line =>
  text.length <= maxLineCharacters ? [atMs, text] : [atMs, `${text.slice(0, maxLineCharacters - 1).toWellFormed()}…`]

/** Gives each line without a time, such as in a stack trace, the time of the line before. */
function carryTimes(lines: readonly Line[]): Line[] {
  let last: number | null = null
  return lines.map(([atMs, text]) => {
    last = atMs ?? last
    return [last, text]
  })
}

/** Keeps the newest lines that fit into the manifest's output limit. */
function keepNewest(lines: Line[], maxOutputBytes: number): Line[] {
  let room = Math.floor(maxOutputBytes * 0.8)
  let first = lines.length
  while (first > 0) {
    room -= Buffer.byteLength(lines[first - 1]?.[1] ?? '') + 24
    if (room < 0) break
    first -= 1
  }
  return lines.slice(first)
}
