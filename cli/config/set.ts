import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { parseSetting, settingOf } from '../../domain/setting.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { printJson, printNote } from '../terminal.ts'
import { getStoredSetting, settingPath } from './stored.ts'

export function addSetCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('set')
      .description('change a setting; running investigations read it at their next cycle')
      .argument('<key>', 'as agent.max_turns.replication_lag')
      .argument('<value>', 'its new value; - reads it from stdin, which keeps secrets out of the history of your shell')
      .option('--reason <text>', 'why, for those who ask later'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config set agent.paused true --reason "maintenance until six"')
    .action(async (key: string, given: string, options: ConnectionOptions & { reason?: string }) => {
      const value = given === '-' ? readFileSync(0, 'utf8').trim() : given
      const parsed = parseSetting(key, value)
      if (!parsed.ok) {
        throw new CommandFailed(settingOf(key) ? 'usage' : 'notFound', `${key} was not changed: ${parsed.reason}.`)
      }
      const { api } = connect(options)
      const before = await getStoredSetting(api, key)
      // Whoever changed it since we looked must not be overwritten unseen.
      const headers = { 'if-match': `"${before?.version ?? 0}"` }
      const answer = await api.put(settingPath(key), { value, reason: options.reason ?? null }, headers)
      if (options.json) return printJson(answer)
      printNote(`${key} is set.`)
    })
}
