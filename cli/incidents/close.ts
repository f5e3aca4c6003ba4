import type { Command } from 'commander'
import { closedStatuses, escalationCategory, resolveOutcome } from '../../domain/incident.ts'
import { readIncident } from '../api.ts'
import { type ConnectionOptions, commandLine, connect, withConnectionOptions } from '../connection.ts'
import { parseFutureTime, parseOneOf } from '../ui/options.ts'
import { printJson, printNote } from '../ui/terminal.ts'
import { describeStanding } from './card.ts'

/**
 * Closes an incident with one of the API's verbs and prints its state. A run ends a moment later.
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
  printNote(`Requested; its run ends in a moment. Follow it with "${commandLine(`incidents watch ${id}`)}".`)
}

const outcomes = resolveOutcome.exclude(['expected']).options

export function addResolveCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('resolve')
      .description('close an incident as resolved, with what it was')
      .argument('<id>', 'as inc_…')
      .requiredOption('--outcome <outcome>', `what it was: ${outcomes.join(', ')}`, parseOneOf(outcomes))
      .requiredOption('--resolution <text>', 'what was wrong, and what was done'),
  )
    .addHelpText(
      'after',
      '\nWhile its alert fires, you get one reminder; afterwards the digest lists it.\nMark expected alerts with "incidents expect".\n\nExample:\n  nightshift incidents resolve inc_01k… --outcome repaired --resolution "restarted"',
    )
    .action((id: string, options: ConnectionOptions & { outcome: string; resolution: string }) =>
      endIncident(id, 'resolve', { outcome: options.outcome, resolution: options.resolution }, options),
    )
}

export function addCancelCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('cancel')
      .description('stop the investigation; a write under way is finished first')
      .argument('<id>', 'as inc_…')
      .requiredOption('--reason <text>', 'why; it is part of the timeline')
      .option(
        '--until <time>',
        'alerts after this time are investigated: 8h, 3d, 2026-12-01T06:00Z (else a day)',
        parseFutureTime,
      ),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift incidents cancel inc_01k… --reason "planned maintenance" --until 4h',
    )
    .action((id: string, { reason, until, ...options }: ConnectionOptions & { reason: string; until?: string }) =>
      endIncident(id, 'cancel', { reason, ...(until && { until }) }, options),
    )
}

type EscalateOptions = ConnectionOptions & { reason: string; category?: string; nextStep?: string }

export function addEscalateCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('escalate')
      .description('end the investigation and hand the incident to people')
      .argument('<id>', 'as inc_…')
      .requiredOption('--reason <text>', 'why; it is part of the timeline')
      .option(
        '--category <word>',
        `what kind: ${escalationCategory.options.join(', ')}; mitigated pages no one`,
        parseOneOf(escalationCategory.options),
      )
      .option('--next-step <text>', 'what to do first'),
  )
    .addHelpText(
      'after',
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
