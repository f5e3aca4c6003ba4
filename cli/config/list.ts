import type { Command } from 'commander'
import { settingOf } from '../../domain/setting.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json } from '../terminal.ts'
import { effectiveSettings, shown } from './effective.ts'
import { storedSettings } from './stored.ts'

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
      const settings = await effectiveSettings(api, options.type)
      if (options.json) return json(settings)
      const row = (name: string, source: string, value: unknown, problem?: string | null) => [
        inert(name),
        inert(source),
        inert(`${shown(value)}${problem ? `  ! ${problem}` : ''}`),
      ]
      const names = new Set(settings.map(({ name }) => name))
      const stored = await storedSettings(api)
      const rows = [
        ...settings.map(({ name, source, value, problem }) => {
          // Some exist per type or per tool only, and have no value that holds for all.
          const family = settingOf(name) || options.type ? null : settingOf(`${name}.any`)
          return family ? row(family.key, 'default', family.fallback) : row(name, source, value, problem)
        }),
        ...stored
          .filter(({ key }) => !names.has(key))
          .map(({ key, value, problem }) => row(key, 'set', value, problem)),
      ]
      data(table(['NAME', 'SOURCE', 'VALUE'], rows, 2))
    })
}
