import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { readIncident } from '../core.ts'
import { tell } from '../demo/tell.ts'
import { followToEnd } from '../incident-end.ts'
import { seconds, within } from '../seconds.ts'
import { data, json, note } from '../terminal.ts'
import { command } from '../where.ts'

type Options = Asking & { wait?: boolean; timeout?: number }

export function investigateIncident(parent: Command): void {
  asking(
    parent
      .command('investigate')
      .description('put an incident before the agent, again if it was closed')
      .argument('<id>', 'as inc_…')
      .option('--wait', 'follow it to its end; exit 7 unless it is resolved')
      .option('--timeout <seconds>', 'with --wait: give up after this long', seconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents investigate inc_01k… --wait')
    .action(async (id: string, options: Options) => {
      const { api } = connected(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/investigate`)
      const incident = await readIncident(api, id)
      if (!options.wait) {
        if (options.json) return json(incident)
        return note(`${id} is ${incident.status}. Follow it with "${command(`incidents watch ${id}`)}".`)
      }
      const since = new Date().toISOString()
      const ended = await within(options.timeout, (signal) =>
        followToEnd(
          api,
          id,
          (event) => {
            const text = options.json || event.seq <= incident.events ? null : tell(event, since)
            if (text) data(text)
          },
          signal,
        ),
      )
      if (options.json) json(ended)
    })
}
