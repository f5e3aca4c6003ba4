import type { Command } from 'commander'
import { addCreateCommand } from './create.ts'
import { addListCommand } from './list.ts'
import { addRevokeCommand } from './revoke.ts'

export function addTokensCommand(program: Command): void {
  const parent = program
    .command('tokens')
    .description('who may ask the API, and for what')
    .addHelpText('after', '\nExample:\n  nightshift tokens list\n  nightshift tokens create alertmanager --role ingest')
  addListCommand(parent)
  addCreateCommand(parent)
  addRevokeCommand(parent)
}
