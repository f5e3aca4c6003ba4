import type { Command } from 'commander'
import { addGetCommand } from './get.ts'
import { addHistoryCommand, addRollbackCommand } from './history.ts'
import { addListCommand } from './list.ts'
import { addSetCommand } from './set.ts'
import { addDiffCommand, addExportCommand, addImportCommand } from './transfer.ts'

export function addConfigCommand(program: Command): void {
  const parent = program
    .command('config')
    .description('settings that are read while Nightshift runs')
    .addHelpText('after', '\nExample:\n  nightshift config list\n  nightshift config set agent.paused true')
  addGetCommand(parent)
  addSetCommand(parent)
  addListCommand(parent)
  addHistoryCommand(parent)
  addRollbackCommand(parent)
  addDiffCommand(parent)
  addExportCommand(parent)
  addImportCommand(parent)
}
