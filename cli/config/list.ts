import type { Command } from 'commander'
import { settingOf } from '../../domain/setting.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson } from '../terminal.ts'
import { formatValue, listEffectiveSettings } from './effective.ts'
import { listStoredSettings } from './stored.ts'

export function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('the settings in force, each with where it comes from')
      .option('--type <type>', 'as they are for this incident type'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config list --type replication_lag')
    .action(async (options: ConnectionOptions & { type?: string }) => {
      const { api } = connect(options)
      const settings = await listEffectiveSettings(api, options.type)
      if (options.json) return printJson(settings)
      const row = (name: string, source: string, value: unknown, problem?: string | null) => [
        inert(name),
        inert(source),
        inert(`${formatValue(value)}${problem ? `  ! ${problem}` : ''}`),
      ]
      const names = new Set(settings.map(({ name }) => name))
      const stored = await listStoredSettings(api)
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
      print(formatTable(['NAME', 'SOURCE', 'VALUE'], rows, 2))
    })
}
