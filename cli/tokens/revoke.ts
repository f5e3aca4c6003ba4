import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { inert } from '../inert.ts'
import { json, note } from '../terminal.ts'
import { aToken } from './a-token.ts'

export function revokeToken(parent: Command): void {
  asking(
    parent
      .command('revoke')
      .description('end a token, and the browsers that are signed in with it')
      .argument('<id>', 'as tok_…; "tokens list" has it'),
  )
    .addHelpText('after', '\nExample:\n  nightshift tokens revoke tok_01k…')
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      const answer = aToken.parse(await api.post(`/api/v1/tokens/${encodeURIComponent(id)}/revoke`))
      if (options.json) return json(answer)
      note(`${inert(answer.name)} (${answer.prefix}) is revoked.`)
    })
}
