import { z } from 'zod'
import type { LiveAnswer } from '../../domain/chat.ts'
import { reportText } from '../../domain/escalation.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import { describeLiveAnswer, formatSpan, listLinks, truncate, withSpaces } from '../../domain/format.ts'
import { closedStatuses } from '../../domain/incident.ts'
import type { Surroundings } from '../../domain/incident-detail.ts'
import { resourceKey } from '../../domain/registry.ts'
import { describeClosure, remarks, withAlertName } from '../../domain/status-words.ts'
import { alertDoubts } from '../../domain/unproven-end.ts'
import type { ApiClient } from '../api.ts'
import { type CliCommand, type ConnectionOptions, commandLine } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { type ApiIncident, readIncident } from '../read-api.ts'
import { followIncident, streamEvents } from '../stream.ts'
import { formatMoment, paintState } from '../ui/table.ts'
import {
  getTerminalWidth,
  inert,
  paint,
  parseSeconds,
  print,
  printJson,
  printJsonLine,
  printNote,
  showFoot,
  withTimeout,
  wrap,
} from '../ui/terminal.ts'
import { describeEvent, formatActor, formatLiveRow } from './timeline.ts'

/** Formats an incident with its brief, if given, and its state. */
export function formatIncident(incident: ApiIncident, brief: string | null = null, now = Date.now()): string {
  const line = (name: string, text: string | null) =>
    text === null ? [] : [`  ${paint('dim', name.padEnd(10))} ${wrap(text, getTerminalWidth() - 14, '             ')}`]
  const { createdAt, closedAt, owner } = incident
  const took = formatSpan((closedAt ? Date.parse(closedAt) : now) - Date.parse(createdAt))
  const by = { alert: '', default: ' (default: the alert has no severity)', person: ' (set by a person)' }[
    incident.severitySource
  ]
  return [
    paint('bold', wrap(inert(incident.title), getTerminalWidth() - 2, '  ')),
    '',
    ...(brief === null ? [] : [brief, '']),
    ...line('incident', inert(incident.id)),
    ...line('severity', paintState(incident.severity) + by),
    ...line('status', describeStanding(incident)),
    ...line('queue', incident.queue ? inert(incident.queue.text) : null),
    ...line('kept', incident.keptReason ? `not investigated: ${inert(incident.keptReason)}` : null),
    ...line('owner', owner ? `${inert(owner.name)}, since ${formatMoment(owner.since)}` : null),
    ...line('review', describeWantedReview(incident)),
    ...line('watched', incident.watchUntil ? `the alert must end by ${formatMoment(incident.watchUntil)}` : null),
    ...line('follows', incident.previousId ? inert(incident.previousId) : null),
    ...line('type', incident.type),
    ...line('alert', incident.alertName === null ? null : inert(incident.alertName)),
    ...line('resource', incident.resource ? inert(resourceKey(incident.resource)) : '(unknown)'),
    ...line('attempt', `${incident.attempt}${incident.role ? `, as ${incident.role}` : ''}`),
    ...line('assigned', incident.assignedTo ? inert(incident.assignedTo) : null),
    ...line('created', formatMoment(createdAt)),
    ...line(closedAt ? 'closed' : 'open for', closedAt ? `${formatMoment(closedAt)}, after ${took}` : took),
    ...line('outcome', describeClosure(incident)),
    ...line('resolution', incident.resolution ? inert(incident.resolution) : null),
  ].join('\n')
}

/**
 * Describes since when the incident waits for the review of a write that an admin made alone, and
 * the command for the review. Null if the incident waits for no review.
 */
function describeWantedReview({ id, reviewWantedAt }: ApiIncident): string | null {
  if (reviewWantedAt === null) return null
  const command = commandLine(`incidents review ${inert(id)} --verdict … --comment "…"`)
  return `waits since ${formatMoment(reviewWantedAt)} for a review by another person: ${command}`
}

/**
 * Formats the alerts of an incident, with their links and their group at the sender. Null without
 * alerts.
 */
export function formatAlerts(alerts: Surroundings['alerts']): string | null {
  if (alerts.length === 0) return null
  const words = { firing: 'firing', resolved: 'ended', unknown: 'unknown' }
  const text = (said: string) => wrap(inert(said), getTerminalWidth() - 14, '             ')
  const lines = alerts.flatMap(({ status, name, title, source, groupKey, links, ...doubted }) => [
    `  ${(status === 'resolved' && doubted.endReason ? 'unproven' : words[status]).padEnd(10)} ${text(`${withAlertName(title, name)} (${source})`)}`,
    ...alertDoubts(doubted).map((doubt) => `             ${text(doubt)}`),
    ...(groupKey ? [`             ${paint('dim', 'group')} ${inert(groupKey)}`] : []),
    ...listLinks(links).map(({ word, href }) => `             ${paint('dim', word.toLowerCase())} ${inert(href)}`),
  ])
  return lines.join('\n')
}

/** Formats the report of the last escalation. Null without an escalation or a report. */
export function formatEscalation(events: readonly IncidentEvent[]): string | null {
  const escalation = events.findLast(({ kind }) => kind === 'escalated')
  const report = escalation?.kind === 'escalated' ? escalation.metadata.report : undefined
  if (!report) return null
  const lines = reportText({ ...report, name: inert(report.name) })
    .split('\n')
    .slice(1)
  return lines
    .map((line) => `  ${wrap(inert(line), getTerminalWidth() - 4, line.startsWith('- ') ? '    ' : '  ')}`)
    .join('\n')
}

/** Returns the outcome of a resolution, the category of an escalation, or `none`. */
export function getEndingCode({
  status,
  outcome,
  category,
}: Pick<ApiIncident, 'status' | 'outcome' | 'category'>): string {
  return (status === 'resolved' ? outcome : status === 'escalated' ? category : null) ?? 'none'
}

/** Describes the status of an incident, and how it was closed. */
export function describeEnding(incident: ApiIncident): string {
  const ending = getEndingCode(incident)
  return ending === 'none' ? paintState(incident.status) : `${paintState(incident.status)}: ${withSpaces(ending)}`
}

/** Describes the status of an incident, with remarks such as `its alert still fires`. */
export function describeStanding(incident: ApiIncident): string {
  return [paintState(incident.status), ...remarks(incident).map((each) => inert(each))].join(', ')
}

type WatchOptions = ConnectionOptions & { timeout?: number }

export function addWatchCommand(parent: CliCommand): void {
  parent
    .command('watch')
    .description('rows as they are written; with an ID, until that incident is closed')
    .argument('[id]', 'such as inc_…; default: all incidents')
    .option('--timeout <seconds>', 'give up after this long', parseSeconds)
    .connected('\nExample:\n  nightshift incidents watch\n  nightshift incidents watch inc_01k… --json')
    .calls(async (api, id: string | undefined, options: WatchOptions) => {
      await withTimeout(options.timeout, async (signal) => {
        if (id === undefined) {
          const lost = (why: string) => printNote(`The stream was lost (${inert(why)}). Reconnecting.`)
          const onLive = (live: LiveAnswer) => showLive(live, options, ` …${inert(live.incidentId).slice(-6)}`)
          for await (const event of streamEvents(api, { signal, onLost: lost, onLive })) {
            if (options.json) printJsonLine(event)
            else print(formatAmongMany(event))
          }
          return
        }
        const { createdAt } = await readIncident(api, id)
        const printRow = (event: IncidentEvent) => {
          const text = options.json ? null : formatLiveRow(event, createdAt)
          if (options.json) printJsonLine(event)
          else if (text) print(text)
        }
        try {
          await followToEnd(api, id, printRow, { signal, onLive: (live) => showLive(live, options) })
        } finally {
          showFoot(null)
        }
      })
    })
}

/**
 * Shows the model that is responding, how long, and the end of its text, in a line at the bottom of
 * the terminal. The next row of the log replaces the line.
 */
function showLive(live: LiveAnswer, { json }: WatchOptions, of = ''): void {
  if (json) return
  if (live.state === 'ended') {
    showFoot(null)
    return
  }
  const who = inert(describeLiveAnswer({ ...live, model: truncate(live.model, 40) }))
  const room = getTerminalWidth() - of.length - who.length - 4
  const words = inert(live.tail.replace(/\s+/g, ' '))
  const end = words.length > room ? `…${words.slice(words.length - room + 1)}` : words
  showFoot(truncate(`${of}${of && ' '}${who}${room > 10 && end ? ` · ${end}` : ''}`, getTerminalWidth() - 1))
}

/** Formats one row of the log with the end of its incident's id, for rows of several incidents. */
function formatAmongMany(event: IncidentEvent): string {
  const time = formatMoment(event.at).slice(11)
  return `${time} …${inert(event.incidentId).slice(-6)} ${event.kind} ${formatActor(event.actor)}: ${describeEvent(event).slice(0, 300)}`
}

type InvestigateOptions = ConnectionOptions & { wait?: boolean; timeout?: number }

export function addInvestigateCommand(parent: CliCommand): void {
  parent
    .command('investigate')
    .description('let the agent investigate an open incident, or a closed incident again')
    .argument('<id>', 'the incident, such as inc_…')
    .option('--wait', 'follow the incident to its end; exits with 7 unless the incident is resolved')
    .option('--timeout <seconds>', 'with --wait: give up after this long', parseSeconds)
    .connected('\nExample:\n  nightshift incidents investigate inc_01k… --wait')
    .calls(async (api, id: string, options: InvestigateOptions) => {
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/investigate`)
      const incident = await readIncident(api, id)
      if (!options.wait) {
        if (options.json) return printJson(incident)
        return printNote(`${id} is ${incident.status}. Follow it with "${commandLine(`incidents watch ${id}`)}".`)
      }
      const since = new Date().toISOString()
      const ended = await withTimeout(options.timeout, (signal) =>
        followToEnd(
          api,
          id,
          (event) => {
            const text = options.json || event.seq <= incident.events ? null : formatLiveRow(event, since)
            if (text) print(text)
          },
          { signal },
        ),
      )
      if (options.json) printJson(ended)
    })
}

type AskOptions = ConnectionOptions & { resource?: string; wait: boolean; timeout?: number }

const askAnswer = z
  .union([z.looseObject({ id: z.string() }), z.looseObject({ incidentId: z.string() })])
  .transform((answer) => String('incidentId' in answer ? answer.incidentId : answer.id))

export function addAskCommand(program: CliCommand): void {
  program
    .command('ask')
    .description('ask the agent a question; it investigates and answers')
    .argument('<question>', 'in plain words')
    .option('--resource <kind:id>', 'the resource that the question is about, such as shard:db-osl-1')
    .option('--no-wait', 'do not wait for the answer; print the id of the incident with the question')
    .option('--timeout <seconds>', 'give up after this long', parseSeconds)
    .connected('\nExample:\n  nightshift ask "Is db-osl-1 well?" --resource shard:db-osl-1')
    .calls(async (api, question: string, options: AskOptions) => {
      const [kind, id] = options.resource?.split(':') ?? []
      if (options.resource && !(kind && id))
        throw new CommandFailed('usage', 'Write --resource as kind:id, such as shard:db-osl-1.')
      const body = { question, ...(kind && { resource: { kind, id } }) }
      const incidentId = askAnswer.parse(await api.post('/api/v1/agent', body))
      if (!options.wait) {
        if (options.json) return printJson(await readIncident(api, incidentId))
        return print(incidentId)
      }
      const { createdAt } = await readIncident(api, incidentId)
      await withTimeout(options.timeout, async (signal) => {
        for await (const event of followIncident(api, incidentId, { signal })) {
          // Prints the progress of the investigation to stderr, because stdout is for the answer.
          const text =
            options.json || ['commented', 'resolved'].includes(event.kind) ? null : formatLiveRow(event, createdAt)
          if (text) printNote(text)
        }
      })
      const incident = await readIncident(api, incidentId)
      if (options.json) printJson(incident)
      else print(inert(incident.resolution ?? `(no answer: ${incident.status})`, { lines: true }))
      if (closedStatuses.includes(incident.status) && incident.status !== 'resolved') {
        throw new CommandFailed(
          'unresolved',
          `There is no answer; see "${commandLine(`incidents show ${incidentId}`)}".`,
        )
      }
    })
}

/**
 * Follows an incident to its end, and calls `each` for every row. Throws CommandFailed unless it
 * ends as resolved.
 */
async function followToEnd(
  api: ApiClient,
  id: string,
  each: (event: IncidentEvent) => void | Promise<void>,
  { signal, onLive }: { signal?: AbortSignal; onLive?: (live: LiveAnswer) => void } = {},
): Promise<ApiIncident> {
  for await (const event of followIncident(api, id, { signal, onLive, onLost: () => undefined })) await each(event)
  const incident = await readIncident(api, id)
  if (!signal?.aborted && incident.status !== 'resolved') {
    throw new CommandFailed('unresolved', `${id} ended ${incident.status}.`)
  }
  return incident
}
