import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { readIncident } from '../core.ts'
import { formatLiveRow } from '../demo/tell.ts'
import { followToEnd } from '../incident-end.ts'
import { parseSeconds, withTimeout } from '../seconds.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { commandLine } from '../where.ts'

type InvestigateOptions = ConnectionOptions & { wait?: boolean; timeout?: number }

export function addInvestigateCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('investigate')
      .description('put an incident before the agent, again if it was closed')
      .argument('<id>', 'as inc_…')
      .option('--wait', 'follow it to its end; exit 7 unless it is resolved')
      .option('--timeout <seconds>', 'with --wait: give up after this long', parseSeconds),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents investigate inc_01k… --wait')
    .action(async (id: string, options: InvestigateOptions) => {
      const { api } = connect(options)
      await api.post(`/api/v1/incidents/${encodeURIComponent(id)}/investigate`)
      const incident = await readIncident(api, id)
      if (!options.wait) {
        if (options.json) return printJson(incident)
        return printNote(`${id} is ${incident.status}. Follow it with "${commandLine(`incidents watch ${id}`)}".`)
      }
      const since = new Date().toISOString()
      const ended = await withTimeout(options.timeout, (signal) =>
        followToEnd(
          api,
          id,
          (event) => {
            const text = options.json || event.seq <= incident.events ? null : formatLiveRow(event, since)
            if (text) print(text)
          },
          signal,
        ),
      )
      if (options.json) printJson(ended)
    })
}
