import { z } from 'zod'
import { expectation, expectationSubject } from '../../domain/expectation.ts'
import { closedStatuses, escalationCategory, reviewVerdict, sayableOutcome } from '../../domain/incident.ts'
import { type CliCommand, type ConnectionOptions, commandLine, connect } from '../connection.ts'
import { apiIncident, readIncident } from '../read-api.ts'
import { formatMoment, printList } from '../ui/table.ts'
import { inert, parseFutureTime, parseOneOf, printJson, printNote } from '../ui/terminal.ts'
import { describeStanding } from './follow.ts'

// Accepts further fields, so that fields of a newer API still appear in --json.
const listedExpectation = expectation.omit({ state: true, createdAt: true }).loose()
const expectationsAnswer = z.looseObject({ items: z.array(listedExpectation) })

export function addExpectationsCommand(program: CliCommand): void {
  const parent = program
    .command('expectations')
    .description('list and end marks of expected alerts')
    .addHelpText('after', '\nExample:\n  nightshift expectations list\n  nightshift expectations end exp_01k…')
  addListCommand(parent)
  addEndCommand(parent)
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('marks in force; with --all also ended marks')
    .option('--all', 'also ended marks')
    .connected('\nExample:\n  nightshift expectations list --json')
    .calls(async (api, options: ConnectionOptions & { all?: boolean }) => {
      const { items } = expectationsAnswer.parse(await api.get('/api/v1/expectations'))
      const shown = options.all ? items : items.filter(({ inForce }) => inForce)
      printList(options, shown, 'Nothing is marked as expected. To mark an alert: "nightshift incidents expect".', {
        MARK: (each) => inert(each.id),
        ON: (each) => each.subject,
        UNTIL: (each) => (each.inForce ? formatMoment(each.until) : each.endedAt ? 'ended early' : 'over'),
        'WHAT AND WHY': (each) => inert(`${each.about}, by ${each.createdBy}: ${each.reason}`),
      })
    })
}

function addEndCommand(parent: CliCommand): void {
  parent
    .command('end')
    .description('end a mark: alerts are handled normally from now on')
    .argument('<id>', 'the mark, such as exp_…')
    .connected('\nExample:\n  nightshift expectations end exp_01k…')
    .calls(async (api, id: string, options: ConnectionOptions) => {
      const ended = await api.post(`/api/v1/expectations/${encodeURIComponent(id)}/end`)
      if (options.json) return printJson(ended)
      printNote(`${inert(id)} has ended: people are notified of alerts again, and alerts are investigated.`)
    })
}

type ExpectOptions = ConnectionOptions & { until: string; reason: string; subject: string }
export function addExpectCommand(parent: CliCommand): void {
  parent
    .command('expect')
    .description('mark the alert as expected until a time, and close the incident as expected')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption('--until <time>', 'a span such as 8h or 3d, or a time such as 2026-12-01T06:00Z', parseFutureTime)
    .requiredOption('--reason <text>', 'why the alert is expected')
    .option(
      '--subject <what>',
      'what is expected: this alert, all alerts on its resource, or all alerts of its type',
      parseOneOf(expectationSubject.options),
      'alert',
    )
    .connected(
      '\nWhen the alert fires again in the same way, its incident closes as expected and\nnobody is notified. Any other alert is handled normally. List marks with "expectations list".\n\nExample:\n  nightshift incidents expect inc_01k… --until 3d --reason "the backup window"',
    )
    .calls(async (api, id: string, { until, reason, subject, ...options }: ExpectOptions) => {
      const answer = await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/expected`, { subject, until, reason })
      if (options.json) return printJson(answer)
      const made = listedExpectation.parse(answer)
      printNote(`${inert(made.id)}: ${inert(made.about)} is expected until ${formatMoment(made.until)}.`)
    })
}

/**
 * Closes an incident by the API action `verb` and prints its state. The run itself ends a moment
 * later.
 */
async function endIncident(
  id: string,
  verb: string,
  body: Record<string, unknown>,
  options: ConnectionOptions,
): Promise<void> {
  const { api } = connect(options)
  await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/${verb}`, body)
  const incident = await readIncident(api, id)
  if (options.json) return printJson(incident)
  if (closedStatuses.includes(incident.status)) return printNote(`${id} is ${describeStanding(incident)}.`)
  printNote(`Requested. The run of ${id} ends in a moment. Follow it with "${commandLine(`incidents watch ${id}`)}".`)
}

const outcomes = sayableOutcome.options

export function addResolveCommand(parent: CliCommand): void {
  parent
    .command('resolve')
    .description('close an incident as resolved, and record the outcome')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption('--outcome <outcome>', `outcome: ${outcomes.join(', ')}`, parseOneOf(outcomes))
    .requiredOption('--resolution <text>', 'what was wrong, and what was done')
    .connected(
      '\nWhile its alert fires, you get one reminder; afterwards the digest lists the incident.\nMark expected alerts with "incidents expect".\n\nExample:\n  nightshift incidents resolve inc_01k… --outcome repaired --resolution "restarted"',
    )
    .action((id: string, options: ConnectionOptions & { outcome: string; resolution: string }) =>
      endIncident(id, 'resolve', { outcome: options.outcome, resolution: options.resolution }, options),
    )
}

export function addCancelCommand(parent: CliCommand): void {
  parent
    .command('cancel')
    .description('stop the investigation; a write under way is finished first')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption('--reason <text>', 'reason, recorded in the timeline')
    .option(
      '--until <time>',
      'alerts after this time are investigated: 8h, 3d, 2026-12-01T06:00Z (default one day)',
      parseFutureTime,
    )
    .connected('\nExample:\n  nightshift incidents cancel inc_01k… --reason "planned maintenance" --until 4h')
    .action((id: string, { reason, until, ...options }: ConnectionOptions & { reason: string; until?: string }) =>
      endIncident(id, 'cancel', { reason, ...(until && { until }) }, options),
    )
}

type EscalateOptions = ConnectionOptions & { reason: string; category?: string; nextStep?: string }

export function addEscalateCommand(parent: CliCommand): void {
  parent
    .command('escalate')
    .description('end the investigation and escalate the incident')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption('--reason <text>', 'reason, recorded in the timeline')
    .option(
      '--category <word>',
      `kind of escalation: ${escalationCategory.options.join(', ')}; mitigated pages no one`,
      parseOneOf(escalationCategory.options),
    )
    .option('--next-step <text>', 'what to do first')
    .connected(
      '\nExample:\n  nightshift incidents escalate inc_01k… --reason "the disk fails" --next-step "order a disk"',
    )
    .action((id: string, { reason, category, nextStep, ...options }: EscalateOptions) =>
      endIncident(
        id,
        'escalate',
        { reason, ...(category && { category }), ...(nextStep && { next_step: nextStep }) },
        options,
      ),
    )
}

type ReviewOptions = ConnectionOptions & { verdict: string; comment: string }

/**
 * Adds `review`, with which another person reviews a critical write that an admin made alone. Home
 * lists these writes.
 */
export function addReviewCommand(parent: CliCommand): void {
  parent
    .command('review')
    .description('review a critical write that an admin did without a second person; that admin cannot review it')
    .argument('<id>', 'the incident, such as inc_…')
    .requiredOption(
      '--verdict <word>',
      `was it ${reviewVerdict.options.join(' or ')}`,
      parseOneOf(reviewVerdict.options),
    )
    .requiredOption('--comment <text>', 'your comment, recorded in the timeline')
    .connected(
      '\n"nightshift home" lists what waits for a review.\n\nExample:\n  nightshift incidents review inc_01k… --verdict right --comment "the pool would have been lost"',
    )
    .calls(async (api, id: string, { verdict, comment, ...options }: ReviewOptions) => {
      const path = `/api/v1/incidents/${encodeURIComponent(id)}/review`
      const answer = apiIncident.parse(await api.post(path, { verdict, text: comment }))
      if (options.json) return printJson(answer)
      printNote(`${inert(id)} is reviewed: the write was ${verdict}. Nobody else has to review it.`)
    })
}
