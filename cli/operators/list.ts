import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json } from '../terminal.ts'
import { anOperator } from './an-operator.ts'

export function listOperators(parent: Command): void {
  asking(parent.command('list').description('people by name'))
    .addHelpText('after', '\nExample:\n  nightshift operators list')
    .action(async (options: Asking) => {
      const { api } = connected(options)
      const people = await listAll(api, '/api/v1/operators?limit=200', anOperator)
      if (options.json) return json(people)
      const rows = people.map(({ name, role, maxRisk, incidentTypes, disabledAt }) => [
        inert(name),
        disabledAt ? 'disabled' : inert(role),
        inert(maxRisk),
        inert(incidentTypes === null ? 'all' : incidentTypes.join(', ') || 'none'),
      ])
      data(table(['NAME', 'ROLE', 'RISKS UP TO', 'INCIDENT TYPES'], rows, 3))
    })
}
