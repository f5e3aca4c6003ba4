import type { Command } from 'commander'
import { z } from 'zod'
import { role } from '../../domain/operator.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { oneOf, whole } from '../one-of.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'
import { aToken } from './a-token.ts'

type Options = Asking & { role: string; operator?: string; scope: string[]; expiresInDays?: number; forEver?: boolean }

export function createToken(parent: Command): void {
  asking(
    parent
      .command('create')
      .description('mint a token; prints it once, and nobody can print it again')
      .argument('<name>', 'what it is for, as "alertmanager in Oslo"')
      .requiredOption('--role <role>', `one of ${role.options.join(', ')}`, oneOf(role.options))
      .option('--operator <name>', 'whose it will be (else yours); agents and senders of alerts are nobody')
      .option('--scope <scope>', 'narrow it: a permission, or type:<incident type>; again for more', more, [])
      .option('--expires-in-days <n>', 'how long it is good (else 90)', whole)
      .option('--for-ever', 'agents and senders of alerts alone'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift tokens create alertmanager --role ingest --for-ever\n  nightshift tokens create "anna, phone" --role approver --operator anna --scope type:disk_pressure',
    )
    .action(async (name: string, options: Options) => {
      const { api } = connected(options)
      const answer = await api.post('/api/v1/tokens', {
        name,
        role: options.role,
        operator: options.operator ?? null,
        scopes: options.scope,
        ...(options.forEver
          ? { expiresInDays: null }
          : options.expiresInDays && { expiresInDays: options.expiresInDays }),
      })
      const minted = aToken.extend({ token: z.string() }).parse(answer)
      if (options.json) return json(minted)
      data(minted.token)
      const until = minted.expiresAt ? `Good until ${moment(minted.expiresAt)}` : 'Good until somebody revokes it'
      note(`${until}. It is not shown again; "nightshift tokens revoke ${minted.id}" ends it.`)
    })
}

function more(value: string, before: string[]): string[] {
  return [...before, value]
}
