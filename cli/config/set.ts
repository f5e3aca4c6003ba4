import type { Command } from 'commander'
import { parseSetting } from '../../domain/setting.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { json, note } from '../terminal.ts'
import { storedSetting } from './stored.ts'

export function setConfig(parent: Command): void {
  asking(
    parent
      .command('set')
      .description('change a setting; running investigations read it at their next cycle')
      .argument('<key>', 'as agent.max_turns.replication_lag')
      .argument('<value>', 'its new value'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config set agent.paused true')
    .action(async (key: string, value: string, options: Asking) => {
      const parsed = parseSetting(key, value)
      if (!parsed.ok) throw new CommandFailed('usage', `${key} was not changed: ${parsed.reason}.`)
      const { api } = connected(options)
      const before = await storedSetting(api, key)
      // Whoever changed it since we looked must not be overwritten unseen.
      const headers: Record<string, string> = { 'if-match': `"${before.version ?? 0}"` }
      const answer = await api.put(`/api/v1/config`, { key, value }, headers)
      if (options.json) return json(answer)
      note(`${key} is set.`)
    })
}
