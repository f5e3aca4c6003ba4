import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson } from '../terminal.ts'
import { apiOperator } from './an-operator.ts'

export function addListCommand(parent: Command): void {
  withConnectionOptions(parent.command('list').description('people by name'))
    .addHelpText('after', '\nExample:\n  nightshift operators list')
    .action(async (options: ConnectionOptions) => {
      const { api } = connect(options)
      const people = await listAll(api, '/api/v1/operators?limit=200', apiOperator)
      if (options.json) return printJson(people)
      const rows = people.map(({ name, role, maxRisk, incidentTypes, disabledAt }) => [
        inert(name),
        disabledAt ? 'disabled' : inert(role),
        inert(maxRisk),
        inert(incidentTypes === null ? 'all' : incidentTypes.join(', ') || 'none'),
      ])
      print(formatTable(['NAME', 'ROLE', 'RISKS UP TO', 'INCIDENT TYPES'], rows, 3))
    })
}
