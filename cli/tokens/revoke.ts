import type { Command } from 'commander'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert } from '../inert.ts'
import { printJson, printNote } from '../terminal.ts'
import { apiToken } from './a-token.ts'

export function addRevokeCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('revoke')
      .description('end a token, and the browsers that are signed in with it')
      .argument('<id>', 'as tok_…; "tokens list" has it'),
  )
    .addHelpText('after', '\nExample:\n  nightshift tokens revoke tok_01k…')
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const answer = apiToken.parse(await api.post(`/api/v1/tokens/${encodeURIComponent(id)}/revoke`))
      if (options.json) return printJson(answer)
      printNote(`${inert(answer.name)} (${answer.prefix}) is revoked.`)
    })
}
