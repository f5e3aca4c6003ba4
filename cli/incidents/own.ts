import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { readIncident } from '../core.ts'
import { json, note } from '../terminal.ts'
import { command } from '../where.ts'
import { standingOf } from '../word.ts'

export function takeIncident(parent: Command): void {
  asking(
    parent
      .command('take')
      .description('take an incident: no reminder and no attempt of the agent while you have it')
      .argument('<id>', 'as inc_…'),
  )
    .addHelpText(
      'after',
      '\nA run is ended first, and a write under way is looked at. It is given back by\nitself when you do nothing on it for half a day (owner.lapse).\n\nExample:\n  nightshift incidents take inc_01k…',
    )
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/take`)
      const incident = await readIncident(api, id)
      if (options.json) return json(incident)
      if (incident.owner) return note(`${id} is ${standingOf(incident)}.`)
      note(`Asked for; it is yours when its run has ended. See it with "${command(`incidents show ${id}`)}".`)
    })
}

export function giveBackIncident(parent: Command): void {
  asking(
    parent
      .command('give-back')
      .description('give an incident back: reminders and attempts begin again')
      .argument('<id>', 'as inc_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents give-back inc_01k…')
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/give-back`)
      const incident = await readIncident(api, id)
      if (options.json) return json(incident)
      note(`${id} is given back; it is ${standingOf(incident)}.`)
    })
}
