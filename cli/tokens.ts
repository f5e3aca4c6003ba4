import { z } from 'zod'
import { apiToken } from '../domain/api-token.ts'
import { formatSpan } from '../domain/format.ts'
import { role } from '../domain/permissions.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { listAll } from './read-api.ts'
import { formatMoment, printList } from './ui/table.ts'
import { collectValues, inert, parseOneOf, parseWholeNumber, print, printJson, printNote } from './ui/terminal.ts'

// Accepts further fields and roles, so that those of a newer API still appear in --json.
const listedToken = apiToken.omit({ kind: true }).extend({ role: z.string() }).loose()

type ListedToken = z.infer<typeof listedToken>

export function addTokensCommand(program: CliCommand): void {
  const parent = program
    .command('tokens')
    .description('tokens for the API, and their rights')
    .addHelpText('after', '\nExample:\n  nightshift tokens list\n  nightshift tokens create alertmanager --role ingest')
  addTokenListCommand(parent)
  addCreateCommand(parent)
  addRevokeCommand(parent)
}

function addTokenListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('tokens, newest first, without their secrets')
    .option('--all', 'also expired and revoked tokens')
    .connected('\nExample:\n  nightshift tokens list\n  nightshift tokens list --all --json')
    .calls(async (api, options: ConnectionOptions & { all?: boolean }) => {
      const tokens = await listAll(api, '/api/v1/tokens?limit=200', listedToken)
      const some = options.all ? tokens : tokens.filter((each) => !isEnded(each))
      const now = Date.now()
      printList(options, some, 'None.', {
        ID: (each) => inert(each.id),
        PREFIX: (each) => inert(each.prefix),
        MAY: (each) => inert([each.role, ...each.scopes].join(' ')),
        PERSON: (each) => inert(each.operator ?? '-'),
        ENDS: (each) => describeEnd(each),
        USED: (each) => (each.lastUsedAt ? `${formatSpan(now - Date.parse(each.lastUsedAt))} ago` : 'never'),
        NAME: (each) => inert(each.name),
      })
    })
}

function isEnded({ revokedAt, expiresAt }: ListedToken): boolean {
  return revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) <= Date.now())
}

function describeEnd(token: ListedToken): string {
  if (token.revokedAt) return 'revoked'
  if (token.expiresAt === null) return 'never'
  return isEnded(token) ? 'expired' : `in ${formatSpan(Date.parse(token.expiresAt) - Date.now())}`
}

type CreateOptions = ConnectionOptions & {
  role: string
  operator?: string
  scope: string[]
  expiresInDays?: number
  forEver?: boolean
}

function addCreateCommand(parent: CliCommand): void {
  parent
    .command('create')
    .description('create a token; prints it once, and it cannot be printed again')
    .argument('<name>', 'purpose of the token, such as "alertmanager in Oslo"')
    .requiredOption('--role <role>', `one of ${role.options.join(', ')}`, parseOneOf(role.options))
    .option(
      '--operator <name>',
      'owner of the token (default: you); tokens of agents and alert senders belong to no person',
    )
    .option(
      '--scope <scope>',
      'limit the token to a permission, or type:<incident type>; repeatable',
      collectValues,
      [],
    )
    .option('--expires-in-days <n>', 'how long it is valid (default 90)', parseWholeNumber)
    .option('--for-ever', 'for agents and alert senders only')
    .connected(
      '\nExample:\n  nightshift tokens create alertmanager --role ingest --for-ever\n  nightshift tokens create "anna, phone" --role approver --operator anna --scope type:disk_pressure',
    )
    .calls(async (api, name: string, options: CreateOptions) => {
      const answer = await api.post('/api/v1/tokens', {
        name,
        role: options.role,
        operator: options.operator ?? null,
        scopes: options.scope,
        ...(options.forEver
          ? { expiresInDays: null }
          : options.expiresInDays && { expiresInDays: options.expiresInDays }),
      })
      const minted = listedToken.extend({ token: z.string() }).parse(answer)
      if (options.json) return printJson(minted)
      print(minted.token)
      const until = minted.expiresAt ? `Valid until ${formatMoment(minted.expiresAt)}` : 'Valid until it is revoked'
      printNote(`${until}. The token is not shown again; "nightshift tokens revoke ${minted.id}" revokes it.`)
    })
}

function addRevokeCommand(parent: CliCommand): void {
  parent
    .command('revoke')
    .description('revoke a token, and sign out the browsers that use it')
    .argument('<id>', 'the token, such as tok_…; see "tokens list"')
    .connected('\nExample:\n  nightshift tokens revoke tok_01k…')
    .calls(async (api, id: string, options: ConnectionOptions) => {
      const answer = listedToken.parse(await api.post(`/api/v1/tokens/${encodeURIComponent(id)}/revoke`))
      if (options.json) return printJson(answer)
      printNote(`${inert(answer.name)} (${answer.prefix}) is revoked.`)
    })
}
