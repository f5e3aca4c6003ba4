import type { Command } from 'commander'
import type { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json, note } from '../terminal.ts'
import { span } from '../time.ts'
import { aToken } from './a-token.ts'

export function listTokens(parent: Command): void {
  asking(
    parent
      .command('list')
      .description('tokens, newest first, never what they are')
      .option('--all', 'also those that have ended'),
  )
    .addHelpText('after', '\nExample:\n  nightshift tokens list\n  nightshift tokens list --all --json')
    .action(async (options: Asking & { all?: boolean }) => {
      const { api } = connected(options)
      const tokens = await listAll(api, '/api/v1/tokens?limit=200', aToken)
      const some = options.all ? tokens : tokens.filter((each) => !ended(each))
      if (options.json) return json(some)
      if (some.length === 0) return note('None.')
      const now = Date.now()
      const rows = some.map((each) => [
        inert(each.id),
        inert(each.prefix),
        inert([each.role, ...each.scopes].join(' ')),
        inert(each.operator ?? '-'),
        stateOf(each),
        each.lastUsedAt ? `${span(now - Date.parse(each.lastUsedAt))} ago` : 'never',
        inert(each.name),
      ])
      data(table(['ID', 'PREFIX', 'MAY', 'PERSON', 'ENDS', 'USED', 'NAME'], rows, 6))
    })
}

function ended({ revokedAt, expiresAt }: z.infer<typeof aToken>): boolean {
  return revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= Date.now())
}

function stateOf(token: z.infer<typeof aToken>): string {
  if (token.revokedAt) return 'revoked'
  if (token.expiresAt === null) return 'never'
  return ended(token) ? 'expired' : `in ${span(Date.parse(token.expiresAt) - Date.now())}`
}
