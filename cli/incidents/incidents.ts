import { text as readText } from 'node:stream/consumers'
import { verifiedIncident } from '../../domain/chain.ts'
import { formatCounts, formatUntold } from '../../domain/findings.ts'
import { formatSpan } from '../../domain/format.ts'
import { foldHypotheses, formatHypothesis } from '../../domain/hypothesis.ts'
import { incidentStatus, severity } from '../../domain/incident.ts'
import { remarks } from '../../domain/status-words.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import {
  type ApiIncident,
  apiIncident,
  listAll,
  listEventsAfter,
  parseEvent,
  readAlerts,
  readIncident,
} from '../read-api.ts'
import { addHoldCommand, addReleaseCommand } from '../retention.ts'
import { addGradeCommand } from '../trust.ts'
import { paintState, printList, shortenIds } from '../ui/table.ts'
import {
  getTerminalWidth,
  inert,
  paint,
  parseOneOf,
  parsePastTime,
  parseWholeNumber,
  print,
  printJson,
  printNote,
  wrap,
} from '../ui/terminal.ts'
import { addCancelCommand, addEscalateCommand, addExpectCommand, addResolveCommand, addReviewCommand } from './close.ts'
import {
  addInvestigateCommand,
  addWatchCommand,
  describeStanding,
  formatAlerts,
  formatEscalation,
  formatIncident,
} from './follow.ts'
import { addExportCommand, addPostmortemCommand, formatBrief, readBrief } from './postmortem.ts'
import { formatFullTimeline, formatTimeline } from './timeline.ts'

export function addIncidentsCommand(program: CliCommand): void {
  const parent = program
    .command('incidents')
    .description('what happened, what was done, and how it ended')
    .addHelpText('after', '\nExample:\n  nightshift incidents list\n  nightshift incidents show inc_01k…')
  addListCommand(parent)
  addShowCommand(parent)
  addWatchCommand(parent)
  addVerifyCommand(parent)
  addExportCommand(parent)
  addPostmortemCommand(parent)
  addNoteCommand(parent)
  addTellCommand(parent)
  addTakeCommand(parent)
  addGiveBackCommand(parent)
  addResolveCommand(parent)
  addCancelCommand(parent)
  addEscalateCommand(parent)
  addExpectCommand(parent)
  addInvestigateCommand(parent)
  addReviewCommand(parent)
  addHoldCommand(parent)
  addReleaseCommand(parent)
  addGradeCommand(parent)
}

type ListOptions = ConnectionOptions & {
  status?: string
  type?: string
  severity?: string
  search?: string
  owner?: string
  since?: string
  until?: string
  limit: number
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('incidents, newest first')
    .option('--status <status>', `one of ${incidentStatus.options.join(', ')}`, parseOneOf(incidentStatus.options))
    .option('--severity <severity>', `one of ${severity.options.join(', ')}`, parseOneOf(severity.options))
    .option('--type <type>', 'type of incident, such as replication_lag')
    .option('--search <text>', 'text in the title')
    .option('--owner <name>', 'me, none, or the name of a person')
    .option('--since <time>', 'opened at this time or later, such as 2026-11-24T22:00Z or 12h', parsePastTime)
    .option('--until <time>', 'opened before', parsePastTime)
    .option('--limit <n>', 'how many at most', parseWholeNumber, 25)
    .connected(
      '\nExample:\n  nightshift incidents list --status escalated --json\n  nightshift incidents list --owner me --since 12h',
    )
    .web(() => '/incidents')
    .calls(async (api, options: ListOptions) => {
      const query = new URLSearchParams({ limit: String(Math.min(options.limit, 100)) })
      for (const [name, value] of Object.entries({ ...options, q: options.search })) {
        if (['status', 'severity', 'type', 'q', 'owner', 'since', 'until'].includes(name) && value)
          query.set(name, String(value))
      }
      const incidents = await listAll(api, `/api/v1/incidents?${query}`, apiIncident, options.limit)
      const shorten = shortenIds(incidents.map(({ id }) => id))
      const columns = {
        ID: (each: ApiIncident) => shorten(each.id),
        SEVERITY: (each: ApiIncident) => paintState(each.severity),
        STATUS: ({ status }: ApiIncident) => paintState(status, shortStatus(status)),
        AGE: (each: ApiIncident) => formatSpan(Date.now() - Date.parse(each.createdAt)),
        TITLE: withResource,
      }
      printList(options, incidents, 'No incidents match.', columns, (each) => inert(remarks(each).join(', ')))
    })
}

/** Shortens the longest status at a terminal, to leave room for the title. */
const shortStatus = (status: ApiIncident['status']) =>
  status === 'awaiting_approval' && process.stdout.isTTY ? 'waiting' : status

/** Adds the name of the resource to a title that lacks it. */
function withResource({ title, resource }: ApiIncident): string {
  return inert(resource && !title.includes(resource.id) ? `${resource.id}: ${title}` : title)
}

function addShowCommand(parent: CliCommand): void {
  parent
    .command('show')
    .description('an incident: the brief, then its whole timeline')
    .argument('<id>', 'the incident, such as inc_…')
    .option('--full', 'nothing cut, and each row with its metadata')
    .connected('\nExample:\n  nightshift incidents show inc_01k… --full')
    .web((id) => `/incidents/${id}`)
    .calls(async (api, id: string, options: ConnectionOptions & { full?: boolean }) => {
      const [incident, brief, events, alerts] = await Promise.all([
        readIncident(api, id),
        readBrief(api, id),
        listEventsAfter(api, id),
        readAlerts(api, id),
      ])
      if (options.json) return printJson({ incident, brief, events, alerts })
      print(formatIncident(incident, formatBrief(brief, incident)))
      const received = formatAlerts(alerts)
      if (received) print(`\n${paint('bold', 'Alerts')}\n${received}`)
      const causes = foldHypotheses(events).map(
        (each) => `  ${wrap(inert(formatHypothesis(each)), getTerminalWidth() - 4, '     ')}`,
      )
      if (causes.length > 0) print(`\n${paint('bold', 'Possible causes')}\n${causes.join('\n')}`)
      const report = incident.status === 'escalated' ? formatEscalation(events) : null
      if (report) print(`\n${paint('bold', 'Escalation report')}\n${report}`)
      print('')
      print(options.full ? formatFullTimeline(events) : formatTimeline(events))
    })
}

function addVerifyCommand(parent: CliCommand): void {
  parent
    .command('verify')
    .description(
      'recompute the hash chain of the timeline, and compare the stored data of the incident with the timeline',
    )
    .argument('<id>', 'the incident, such as inc_…')
    .option('--head <hash>', 'an earlier hash, for example from a webhook, which must still be in the chain')
    .connected('\nExample:\n  nightshift incidents verify inc_01k… --head 9f86d081…')
    .calls(async (api, id: string, options: ConnectionOptions & { head?: string }) => {
      const query = options.head ? `?${new URLSearchParams({ head: options.head })}` : ''
      const answer = verifiedIncident
        .loose()
        .parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/verify${query}`))
      if (options.json) printJson(answer)
      else if (answer.ok) {
        print(
          `${paint('green', '✔')} The chain of ${id} holds: ${answer.events} rows, and the hash of each row covers the row before.`,
        )
        print(`  head ${inert(answer.headHash)}`)
        if (options.head) print('  Your hash is in the chain, so nobody removed a row up to this hash.')
        print(`  Compared with these rows: ${inert(formatCounts(answer.checked))}.`)
      }
      const untold = formatUntold(answer)
      if (untold && !options.json) print(`  ${inert(untold)}`)
      if (answer.ok) return
      if (!answer.problem && answer.differences.length > 0) {
        const lines = answer.differences.map(({ subject, what }) => `\n  ${inert(subject)}: ${inert(what)}`)
        const said = `${answer.differences.length} stored facts of ${id} differ from its rows:${lines.join('')}`
        throw new CommandFailed('error', options.json ? '' : said)
      }
      const where = answer.problem ? `row ${answer.problem.seq}: ${inert(answer.problem.what)}` : 'an unknown place'
      throw new CommandFailed('error', options.json ? '' : `The chain of ${id} does NOT hold at ${where}.`)
    })
}

function addNoteCommand(parent: CliCommand): void {
  parent
    .command('note')
    .description('add a finding or a step to the log of an incident, under your name')
    .argument('<id>', 'the incident, such as inc_…')
    .argument('<text>', 'what you saw or did')
    .connected('\nExample:\n  nightshift incidents note inc_01k… "called the supplier; the disk comes at noon"')
    .calls(async (api, id: string, text: string, options: ConnectionOptions) => {
      const body = { action: 'commented', detail: text }
      const event = parseEvent(await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/events`, body))
      if (options.json) return printJson(event)
      printNote(`Row ${event.seq} of ${event.incidentId}.`)
    })
}

function addTellCommand(parent: CliCommand): void {
  parent
    .command('tell')
    .description('send the agent a message while it investigates; its next turn reads the message')
    .argument('<id>', 'the incident, such as inc_…')
    .argument('<text>', 'the message; - reads stdin')
    .connected(
      '\nYour message is advice and approves nothing. Names in the message count as if the agent had looked them up.\n\nExample:\n  nightshift incidents tell inc_01k… "look at node-web-osl-1b first, we changed it at noon"',
    )
    .calls(async (api, id: string, text: string, options: ConnectionOptions) => {
      const body = { text: text === '-' ? await readText(process.stdin) : text }
      const event = parseEvent(await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/messages`, body))
      if (options.json) return printJson(event)
      printNote(`Row ${event.seq} of ${event.incidentId}. The agent reads the message in its next turn.`)
    })
}

function addTakeCommand(parent: CliCommand): void {
  parent
    .command('take')
    .description('take an incident: while you own it, nobody is reminded and the agent does not investigate it')
    .argument('<id>', 'the incident, such as inc_…')
    .connected(
      '\nThe command first ends the run; if a write is running, its result is still checked. If you do nothing about the incident for half a day (owner.lapse), it is given back.\n\nExample:\n  nightshift incidents take inc_01k…',
    )
    .calls(async (api, id: string, options: ConnectionOptions) => {
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/take`)
      const incident = await readIncident(api, id)
      if (options.json) return printJson(incident)
      if (incident.owner) return printNote(`${id} is ${describeStanding(incident)}.`)
      printNote(
        `Requested. The incident is yours when its run has ended. See "${commandLine(`incidents show ${id}`)}".`,
      )
    })
}

function addGiveBackCommand(parent: CliCommand): void {
  parent
    .command('give-back')
    .description('give an incident back: reminders and attempts start again')
    .argument('<id>', 'the incident, such as inc_…')
    .connected('\nExample:\n  nightshift incidents give-back inc_01k…')
    .calls(async (api, id: string, options: ConnectionOptions) => {
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/give-back`)
      const incident = await readIncident(api, id)
      if (options.json) return printJson(incident)
      printNote(`${id} is given back; it is ${describeStanding(incident)}.`)
    })
}
