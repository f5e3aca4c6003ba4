import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { parseEvent } from '../core.ts'
import { printJson, printNote } from '../terminal.ts'

export function addNoteCommand(parent: Command): void {
  withConnectionOptions(
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
    .action(async (id: string, text: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const body = { action: 'commented', detail: text }
      const event = parseEvent(await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/events`, body))
      if (options.json) return printJson(event)
      printNote(`Row ${event.seq} of ${event.incidentId}.`)
    })
}
