import type { Command } from 'commander'
import { addListCommand } from './list.ts'
import { addSetCommand } from './set.ts'

export function addOperatorsCommand(program: Command): void {
  const parent = program
    .command('operators')
    .description('people, and what each may decide')
    .addHelpText('after', '\nExample:\n  nightshift operators list\n  nightshift operators set anna --role approver')
  addListCommand(parent)
  addSetCommand(parent)
}
