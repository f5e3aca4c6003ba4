import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { apiExpectation } from '../expectations/an-expectation.ts'
import { inert } from '../inert.ts'
import { parseFutureTime } from '../moment-ahead.ts'
import { parseOneOf } from '../one-of.ts'
import { printJson, printNote } from '../terminal.ts'
import { formatMoment } from '../time.ts'

type ExpectOptions = ConnectionOptions & { until: string; reason: string; subject: string }
const subjects = ['alert', 'resource', 'type']

export function addExpectCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('expect')
      .description('mark what fires as expected until a time, and end the incident so')
      .argument('<id>', 'as inc_…')
      .requiredOption('--until <time>', 'a span as 8h or 3d, or a time as 2026-12-01T06:00Z', parseFutureTime)
      .requiredOption('--reason <text>', 'why it is expected')
      .option(
        '--subject <what>',
        'what is expected: this alert, all on its resource, its type',
        parseOneOf(subjects),
        'alert',
      ),
  )
    .addHelpText(
      'after',
      '\nWhen it fires again, code looks: the same as now ends as expected and nobody is\nnotified; anything else goes the normal way. List marks with "expectations list".\n\nExample:\n  nightshift incidents expect inc_01k… --until 3d --reason "the backup window"',
    )
    .action(async (id: string, { until, reason, subject, ...options }: ExpectOptions) => {
      const { api } = connect(options)
      const answer = await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/expected`, { subject, until, reason })
      if (options.json) return printJson(answer)
      const made = apiExpectation.parse(answer)
      printNote(`${inert(made.id)}: ${inert(made.about)} is expected until ${formatMoment(made.until)}.`)
    })
}
