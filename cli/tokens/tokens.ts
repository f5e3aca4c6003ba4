import type { Command } from 'commander'
import { createToken } from './create.ts'
import { listTokens } from './list.ts'
import { revokeToken } from './revoke.ts'

export function tokensCommand(program: Command): void {
  const parent = program
    .command('tokens')
    .description('who may ask the API, and for what')
    .addHelpText('after', '\nExample:\n  nightshift tokens list\n  nightshift tokens create alertmanager --role ingest')
  listTokens(parent)
  createToken(parent)
  revokeToken(parent)
}
