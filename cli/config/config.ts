import type { Command } from 'commander'
import { getConfig } from './get.ts'
import { configHistory, rollbackConfig } from './history.ts'
import { listConfig } from './list.ts'
import { setConfig } from './set.ts'
import { diffConfig, exportConfig, importConfig } from './transfer.ts'

export function configCommand(program: Command): void {
  const parent = program
    .command('config')
    .description('settings that are read while Nightshift runs')
    .addHelpText('after', '\nExample:\n  nightshift config list\n  nightshift config set agent.paused true')
  getConfig(parent)
  setConfig(parent)
  listConfig(parent)
  configHistory(parent)
  rollbackConfig(parent)
  diffConfig(parent)
  exportConfig(parent)
  importConfig(parent)
}
