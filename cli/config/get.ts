import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { inert } from '../inert.ts'
import { data, json } from '../terminal.ts'
import { shown } from './list.ts'
import { storedSetting } from './stored.ts'

export function getConfig(parent: Command): void {
  asking(parent.command('get').description('what is stored under a key').argument('<key>', 'as agent.max_turns'))
    .addHelpText('after', '\nExample:\n  nightshift config get agent.max_turns')
    .action(async (key: string, options: Asking) => {
      const { api } = connected(options)
      const setting = await storedSetting(api, key)
      if (options.json) return json(setting)
      data(inert(shown(setting.value), { lines: true }))
    })
}
