import type { Command } from 'commander'
import { listOperators } from './list.ts'
import { setOperator } from './set.ts'

export function operatorsCommand(program: Command): void {
  const parent = program
    .command('operators')
    .description('people, and what each may decide')
    .addHelpText('after', '\nExample:\n  nightshift operators list\n  nightshift operators set anna --role approver')
  listOperators(parent)
  setOperator(parent)
}
