import { formatSpan } from '../domain/format.ts'
import { type DoneLine, home, type NeedLine, type WorkLine } from '../domain/incident-detail.ts'
import { sitePolicyState } from '../domain/site-policy-state.ts'
import { describeNeed, describeTonight, describeWork, outcomeWords } from '../domain/status-words.ts'
import { describeStop, nameScope } from '../domain/stop.ts'
import { stopList } from '../domain/stop-answer.ts'
import type { ApiClient } from './api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from './connection.ts'
import { formatTable, paintState, shortenIds } from './ui/table.ts'
import { getTerminalWidth, inert, paint, parsePastTime, print, printJson, printNote, wrap } from './ui/terminal.ts'

/** Adds the start page: what waits for the person, what is in progress, and what is done. */
export function addHomeCommand(program: CliCommand): void {
  program
    .command('home')
    .description('overview of the night: what needs you, what is in progress, what is done')
    .option('--since <time>', 'when the night began, such as 12h or 2026-11-24T22:00Z (12h)', parsePastTime)
    .connected('\nExample:\n  nightshift home\n  nightshift home --since 24h --json')
    .web(() => '/')
    .calls(async (api, options: ConnectionOptions & { since?: string }) => {
      const query = options.since ? `?since=${encodeURIComponent(options.since)}` : ''
      const night = home.parse(await api.get(`/api/v1/home${query}`))
      if (options.json) return printJson(night)
      await printStandingLines(api)
      print(wrap(describeTonight(night.tonight), getTerminalWidth()))
      const { needsYou, inProgress, done } = night
      printPart('Needs you', needsYou, 'Nothing waits for you.', (line: NeedLine) => ({
        what: describeNeed(line),
        time: line.approval
          ? `${formatSpan(Date.parse(line.approval.expiresAt) - Date.now())} left`
          : toAge(line.since),
        id: line.approval?.id ?? line.incident.id,
      }))
      printPart('In progress', inProgress, 'Nothing is being investigated.', (line: WorkLine) => ({
        what: describeWork(line),
        time: toAge(line.since),
        id: line.incident.id,
      }))
      printPart('Done', done, 'No incident was closed in this time.', (line: DoneLine) => ({
        what: line.outcome ? outcomeWords[line.outcome] : 'cancelled',
        time: formatSpan(line.seconds * 1_000),
        id: line.incident.id,
      }))
    })
}

/** Prints the kinds of write that people have stopped, and a policy that waits for an admin. */
async function printStandingLines(api: ApiClient): Promise<void> {
  const { items } = stopList.parse(await api.get('/api/v1/stops'))
  for (const stop of items) printNote(`Stopped: ${inert(nameScope(stop))}, ${inert(describeStop(stop))}`)
  const { waiting } = sitePolicyState.parse(await api.get('/api/v1/policy'))
  if (waiting)
    printNote(
      `A policy waits for an admin: ${inert(waiting.widens[0] ?? '')}. "${commandLine(`policy accept ${waiting.digest.slice(0, 12)}`)}" puts it in force.`,
    )
}

const toAge = (iso: string) => formatSpan(Date.now() - Date.parse(iso))

type Line = NeedLine | WorkLine | DoneLine

function printPart<T extends Line>(
  title: string,
  part: { incidents: number; lines: T[] },
  empty: string,
  describe: (line: T) => { what: string; time: string; id: string },
): void {
  print(`\n${paint('bold', title)} ${part.incidents}`)
  if (part.lines.length === 0) {
    print(`  ${empty}`)
    return
  }
  const shorten = shortenIds(part.lines.map((line) => describe(line).id))
  const rows = part.lines.map((line) => {
    const { what, time, id } = describe(line)
    const name = line.count === 1 ? inert(line.incident.title) : `${line.type} × ${line.count}`
    return [paintState(line.severity), time, shorten(id), `${name}: ${inert(what)}`]
  })
  print(formatTable(['SEVERITY', 'TIME', 'ID', 'WHAT'], rows, 3))
  const left = part.incidents - part.lines.reduce((sum, { count }) => sum + count, 0)
  if (left > 0) printNote(`${left} more: nightshift incidents list`)
}
