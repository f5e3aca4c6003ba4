import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert } from '../inert.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { describeSource, formatValue, getEffectiveSetting } from './effective.ts'
import { getStoredSetting } from './stored.ts'

export function addGetCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('get')
      .description('the value that is in force, and what was set')
      .argument('<key>', 'as agent.max_turns'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config get agent.max_turns')
    .action(async (key: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const [stored, effective] = await Promise.all([getStoredSetting(api, key), getEffectiveSetting(api, key)])
      if (options.json) return printJson({ key, stored, effective })
      if (stored?.problem) printNote(`What was set has no effect: ${inert(stored.problem)}.`)
      if (stored && !stored.problem && !stored.locked) return print(inert(formatValue(stored.value), { lines: true }))
      print(inert(formatValue(effective?.value), { lines: true }))
      if (effective) printNote(`From: ${inert(describeSource(effective))}.`)
    })
}
