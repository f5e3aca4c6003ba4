import type { Command } from 'commander'
import { z } from 'zod'
import { role } from '../../domain/operator.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { parseOneOf, parseWholeNumber } from '../one-of.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatMoment } from '../time.ts'
import { apiToken } from './a-token.ts'

type CreateOptions = ConnectionOptions & {
  role: string
  operator?: string
  scope: string[]
  expiresInDays?: number
  forEver?: boolean
}

export function addCreateCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('create')
      .description('mint a token; prints it once, and nobody can print it again')
      .argument('<name>', 'what it is for, as "alertmanager in Oslo"')
      .requiredOption('--role <role>', `one of ${role.options.join(', ')}`, parseOneOf(role.options))
      .option('--operator <name>', 'whose it will be (else yours); agents and senders of alerts are nobody')
      .option('--scope <scope>', 'narrow it: a permission, or type:<incident type>; again for more', collectValues, [])
      .option('--expires-in-days <n>', 'how long it is good (else 90)', parseWholeNumber)
      .option('--for-ever', 'agents and senders of alerts alone'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift tokens create alertmanager --role ingest --for-ever\n  nightshift tokens create "anna, phone" --role approver --operator anna --scope type:disk_pressure',
    )
    .action(async (name: string, options: CreateOptions) => {
      const { api } = connect(options)
      const answer = await api.post('/api/v1/tokens', {
        name,
        role: options.role,
        operator: options.operator ?? null,
        scopes: options.scope,
        ...(options.forEver
          ? { expiresInDays: null }
          : options.expiresInDays && { expiresInDays: options.expiresInDays }),
      })
      const minted = apiToken.extend({ token: z.string() }).parse(answer)
      if (options.json) return printJson(minted)
      print(minted.token)
      const until = minted.expiresAt ? `Good until ${formatMoment(minted.expiresAt)}` : 'Good until somebody revokes it'
      printNote(`${until}. It is not shown again; "nightshift tokens revoke ${minted.id}" ends it.`)
    })
}

function collectValues(value: string, before: string[]): string[] {
  return [...before, value]
}
