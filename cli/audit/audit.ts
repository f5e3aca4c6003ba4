import type { Command } from 'commander'
import { listAudit } from './list.ts'

export function auditCommand(program: Command): void {
  const parent = program
    .command('audit')
    .description('who did what')
    .addHelpText('after', '\nExample:\n  nightshift audit list --who anna --what approval')
  listAudit(parent)
}
