import type { Command } from 'commander'
import { addListCommand } from './list.ts'

export function addAuditCommand(program: Command): void {
  const parent = program
    .command('audit')
    .description('who did what')
    .addHelpText('after', '\nExample:\n  nightshift audit list --who anna --what approval')
  addListCommand(parent)
}
