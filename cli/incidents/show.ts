import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { eventsAfter, readIncident } from '../core.ts'
import { escalationCard, incidentCard } from '../incident-card.ts'
import { data, json, paint } from '../terminal.ts'
import { fullTimeline, timeline } from '../timeline.ts'

export function showIncident(parent: Command): void {
  asking(
    parent
      .command('show')
      .description('an incident and its whole timeline')
      .argument('<id>', 'as inc_…')
      .option('--full', 'nothing cut, and each row with its metadata'),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents show inc_01k… --full')
    .action(async (id: string, options: Asking & { full?: boolean }) => {
      const { api } = connected(options)
      const [incident, events] = await Promise.all([readIncident(api, id), eventsAfter(api, id)])
      if (options.json) return json({ incident, events })
      data(incidentCard(incident))
      const report = incident.status === 'escalated' ? escalationCard(events) : null
      if (report) data(`\n${paint('bold', 'Handed to people')}\n${report}`)
      data('')
      data(options.full ? fullTimeline(events) : timeline(events))
    })
}
