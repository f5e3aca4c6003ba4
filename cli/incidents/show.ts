import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { listEventsAfter, readIncident } from '../core.ts'
import { formatEscalation, formatIncident } from '../incident-card.ts'
import { paint, print, printJson } from '../terminal.ts'
import { formatFullTimeline, formatTimeline } from '../timeline.ts'

export function addShowCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('show')
      .description('an incident and its whole timeline')
      .argument('<id>', 'as inc_…')
      .option('--full', 'nothing cut, and each row with its metadata'),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents show inc_01k… --full')
    .action(async (id: string, options: ConnectionOptions & { full?: boolean }) => {
      const { api } = connect(options)
      const [incident, events] = await Promise.all([readIncident(api, id), listEventsAfter(api, id)])
      if (options.json) return printJson({ incident, events })
      print(formatIncident(incident))
      const report = incident.status === 'escalated' ? formatEscalation(events) : null
      if (report) print(`\n${paint('bold', 'Handed to people')}\n${report}`)
      print('')
      print(options.full ? formatFullTimeline(events) : formatTimeline(events))
    })
}
