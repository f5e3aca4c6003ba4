import type { Command } from 'commander'
import { closedStatuses } from '../../domain/incident.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { readIncident } from '../core.ts'
import { json, note } from '../terminal.ts'
import { command } from '../where.ts'

/** `cancel` and `escalate`: a person takes an incident out of the agent's hands. */
function endIncident(parent: Command, verb: 'cancel' | 'escalate', description: string): void {
  asking(
    parent
      .command(verb)
      .description(description)
      .argument('<id>', 'as inc_…')
      .requiredOption('--reason <text>', 'why; it is part of the timeline'),
  )
    .addHelpText('after', `\nExample:\n  nightshift incidents ${verb} inc_01k… --reason "planned maintenance"`)
    .action(async (id: string, options: Asking & { reason: string }) => {
      const { api } = connected(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/${verb}`, { reason: options.reason })
      const incident = await readIncident(api, id)
      if (options.json) return json(incident)
      if (closedStatuses.includes(incident.status)) return note(`${id} is ${incident.status}.`)
      note(`Asked for; the run ends it in a moment. Follow it with "${command(`incidents watch ${id}`)}".`)
    })
}

export function cancelIncident(parent: Command): void {
  endIncident(parent, 'cancel', 'stop the investigation; a write under way is finished first')
}

export function escalateIncident(parent: Command): void {
  endIncident(parent, 'escalate', 'end the investigation and hand the incident to a person')
}
