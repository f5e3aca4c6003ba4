import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { anEvent } from '../core.ts'
import { json, note } from '../terminal.ts'

export function noteOnIncident(parent: Command): void {
  asking(
    parent
      .command('note')
      .description('write a finding or a step into the log of an incident, under your name')
      .argument('<id>', 'as inc_…')
      .argument('<text>', 'what you saw or did'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift incidents note inc_01k… "called the supplier; the disk comes at noon"',
    )
    .action(async (id: string, text: string, options: Asking) => {
      const { api } = connected(options)
      const body = { action: 'commented', detail: text }
      const event = anEvent(await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/events`, body))
      if (options.json) return json(event)
      note(`Row ${event.seq} of ${event.incidentId}.`)
    })
}
