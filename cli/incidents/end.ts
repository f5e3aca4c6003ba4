import type { Command } from 'commander'
import { closedStatuses, escalationCategory, resolveOutcome } from '../../domain/incident.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { readIncident } from '../core.ts'
import { momentAhead } from '../moment-ahead.ts'
import { oneOf } from '../one-of.ts'
import { json, note } from '../terminal.ts'
import { command } from '../where.ts'
import { standingOf } from '../word.ts'

/** Ends an incident by one of the API's verbs and says where it stands then: a run ends by itself, a moment later. */
async function end(id: string, verb: string, body: Record<string, unknown>, options: Asking): Promise<void> {
  const { api } = connected(options)
  await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/${verb}`, body)
  const incident = await readIncident(api, id)
  if (options.json) return json(incident)
  if (closedStatuses.includes(incident.status)) return note(`${id} is ${standingOf(incident)}.`)
  note(`Asked for; the run ends it in a moment. Follow it with "${command(`incidents watch ${id}`)}".`)
}

const outcomes = resolveOutcome.exclude(['expected']).options

export function resolveIncident(parent: Command): void {
  asking(
    parent
      .command('resolve')
      .description('close an incident as resolved; you say what it was')
      .argument('<id>', 'as inc_…')
      .requiredOption('--outcome <outcome>', `what it was: ${outcomes.join(', ')}`, oneOf(outcomes))
      .requiredOption('--resolution <text>', 'what was wrong, and what was done'),
  )
    .addHelpText(
      'after',
      '\nWhile its alert fires you are reminded once; then it is in the digest.\nWhat is expected is marked with "incidents expect".\n\nExample:\n  nightshift incidents resolve inc_01k… --outcome repaired --resolution "restarted"',
    )
    .action((id: string, options: Asking & { outcome: string; resolution: string }) =>
      end(id, 'resolve', { outcome: options.outcome, resolution: options.resolution }, options),
    )
}

export function cancelIncident(parent: Command): void {
  asking(
    parent
      .command('cancel')
      .description('stop the investigation; a write under way is finished first')
      .argument('<id>', 'as inc_…')
      .requiredOption('--reason <text>', 'why; it is part of the timeline')
      .option('--until <time>', 'what fires then is investigated: 8h, 3d, 2026-12-01T06:00Z (else a day)', momentAhead),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift incidents cancel inc_01k… --reason "planned maintenance" --until 4h',
    )
    .action((id: string, { reason, until, ...options }: Asking & { reason: string; until?: string }) =>
      end(id, 'cancel', { reason, ...(until && { until }) }, options),
    )
}

type Escalating = Asking & { reason: string; category?: string; nextStep?: string }

export function escalateIncident(parent: Command): void {
  asking(
    parent
      .command('escalate')
      .description('end the investigation and hand the incident to people')
      .argument('<id>', 'as inc_…')
      .requiredOption('--reason <text>', 'why; it is part of the timeline')
      .option(
        '--category <word>',
        `what kind: ${escalationCategory.options.join(', ')}; nobody is woken for mitigated`,
        oneOf(escalationCategory.options),
      )
      .option('--next-step <text>', 'what is to be done first'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift incidents escalate inc_01k… --reason "the disk fails" --next-step "order a disk"',
    )
    .action((id: string, { reason, category, nextStep, ...options }: Escalating) =>
      end(id, 'escalate', { reason, ...(category && { category }), ...(nextStep && { next_step: nextStep }) }, options),
    )
}
