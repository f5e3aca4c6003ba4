import type { Command } from 'commander'
import { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import { inert, inertJsonText } from '../inert.ts'
import { table } from '../table.ts'
import { data, json } from '../terminal.ts'

const effective = z.looseObject({
  items: z.array(
    z.looseObject({ key: z.string(), value: z.unknown(), source: z.string(), problem: z.string().nullish() }),
  ),
})

export function listConfig(parent: Command): void {
  asking(
    parent
      .command('list')
      .description('the settings in force, each with where it comes from')
      .option('--type <type>', 'as they are for this incident type'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config list --type replication_lag')
    .action(async (options: Asking & { type?: string }) => {
      const { api } = connected(options)
      const query = options.type ? `?${new URLSearchParams({ type: options.type })}` : ''
      const answer = effective.parse(await api.get(`/api/v1/config/effective${query}`))
      if (options.json) return json(answer.items)
      const rows = answer.items.map(({ key, value, source, problem }) => [
        inert(key),
        source,
        inert(`${shown(value)}${problem ? `  ! ${problem}` : ''}`),
      ])
      data(table(['KEY', 'SOURCE', 'VALUE'], rows, 2))
    })
}

export function shown(value: unknown): string {
  if (value === null || value === undefined) return '(not set)'
  return typeof value === 'string' ? value : inertJsonText(value)
}
