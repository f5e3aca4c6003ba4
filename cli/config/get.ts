import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { inert } from '../inert.ts'
import { data, json, note } from '../terminal.ts'
import { effectiveSetting, shown, sourceOf } from './effective.ts'
import { storedSetting } from './stored.ts'

export function getConfig(parent: Command): void {
  asking(
    parent
      .command('get')
      .description('the value that is in force, and what was set')
      .argument('<key>', 'as agent.max_turns'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config get agent.max_turns')
    .action(async (key: string, options: Asking) => {
      const { api } = connected(options)
      const [stored, effective] = await Promise.all([storedSetting(api, key), effectiveSetting(api, key)])
      if (options.json) return json({ key, stored, effective })
      if (stored?.problem) note(`What was set has no effect: ${inert(stored.problem)}.`)
      if (stored && !stored.problem && !stored.locked) return data(inert(shown(stored.value), { lines: true }))
      data(inert(shown(effective?.value), { lines: true }))
      if (effective) note(`From: ${inert(sourceOf(effective))}.`)
    })
}
