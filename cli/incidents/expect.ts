import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { anExpectation } from '../expectations/an-expectation.ts'
import { inert } from '../inert.ts'
import { momentAhead } from '../moment-ahead.ts'
import { oneOf } from '../one-of.ts'
import { json, note } from '../terminal.ts'
import { moment } from '../time.ts'

type Options = Asking & { until: string; reason: string; subject: string }
const subjects = ['alert', 'resource', 'type']

export function expectIncident(parent: Command): void {
  asking(
    parent
      .command('expect')
      .description('mark what fires as expected until a time, and end the incident so')
      .argument('<id>', 'as inc_…')
      .requiredOption('--until <time>', 'a span as 8h or 3d, or a time as 2026-12-01T06:00Z', momentAhead)
      .requiredOption('--reason <text>', 'why it is expected')
      .option(
        '--subject <what>',
        'what is expected: this alert, all on its resource, its type',
        oneOf(subjects),
        'alert',
      ),
  )
    .addHelpText(
      'after',
      '\nWhen it fires again, code looks: the same as now ends as expected and nobody is\nnotified; anything else goes the normal way. List marks with "expectations list".\n\nExample:\n  nightshift incidents expect inc_01k… --until 3d --reason "the backup window"',
    )
    .action(async (id: string, { until, reason, subject, ...options }: Options) => {
      const { api } = connected(options)
      const answer = await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/expected`, { subject, until, reason })
      if (options.json) return json(answer)
      const made = anExpectation.parse(answer)
      note(`${inert(made.id)}: ${inert(made.about)} is expected until ${moment(made.until)}.`)
    })
}
