import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { readIncident } from '../core.ts'
import { printJson, printNote } from '../terminal.ts'
import { commandLine } from '../where.ts'
import { describeStanding } from '../word.ts'

export function addTakeCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('take')
      .description('take an incident: no reminder and no attempt of the agent while you have it')
      .argument('<id>', 'as inc_…'),
  )
    .addHelpText(
      'after',
      '\nA run is ended first, and a write under way is looked at. It is given back by\nitself when you do nothing on it for half a day (owner.lapse).\n\nExample:\n  nightshift incidents take inc_01k…',
    )
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/take`)
      const incident = await readIncident(api, id)
      if (options.json) return printJson(incident)
      if (incident.owner) return printNote(`${id} is ${describeStanding(incident)}.`)
      printNote(`Asked for; it is yours when its run has ended. See it with "${commandLine(`incidents show ${id}`)}".`)
    })
}

export function addGiveBackCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('give-back')
      .description('give an incident back: reminders and attempts begin again')
      .argument('<id>', 'as inc_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents give-back inc_01k…')
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/give-back`)
      const incident = await readIncident(api, id)
      if (options.json) return printJson(incident)
      printNote(`${id} is given back; it is ${describeStanding(incident)}.`)
    })
}
