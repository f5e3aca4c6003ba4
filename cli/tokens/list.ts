import type { Command } from 'commander'
import type { z } from 'zod'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatSpan } from '../time.ts'
import { apiToken } from './a-token.ts'

export function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('tokens, newest first, never what they are')
      .option('--all', 'also those that have ended'),
  )
    .addHelpText('after', '\nExample:\n  nightshift tokens list\n  nightshift tokens list --all --json')
    .action(async (options: ConnectionOptions & { all?: boolean }) => {
      const { api } = connect(options)
      const tokens = await listAll(api, '/api/v1/tokens?limit=200', apiToken)
      const some = options.all ? tokens : tokens.filter((each) => !isEnded(each))
      if (options.json) return printJson(some)
      if (some.length === 0) return printNote('None.')
      const now = Date.now()
      const rows = some.map((each) => [
        inert(each.id),
        inert(each.prefix),
        inert([each.role, ...each.scopes].join(' ')),
        inert(each.operator ?? '-'),
        describeEnd(each),
        each.lastUsedAt ? `${formatSpan(now - Date.parse(each.lastUsedAt))} ago` : 'never',
        inert(each.name),
      ])
      print(formatTable(['ID', 'PREFIX', 'MAY', 'PERSON', 'ENDS', 'USED', 'NAME'], rows, 6))
    })
}

function isEnded({ revokedAt, expiresAt }: z.infer<typeof apiToken>): boolean {
  return revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= Date.now())
}

function describeEnd(token: z.infer<typeof apiToken>): string {
  if (token.revokedAt) return 'revoked'
  if (token.expiresAt === null) return 'never'
  return isEnded(token) ? 'expired' : `in ${formatSpan(Date.parse(token.expiresAt) - Date.now())}`
}
