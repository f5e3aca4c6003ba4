import type { Command } from 'commander'
import { z } from 'zod'
import { standingGrant } from '../../domain/approval.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatMoment } from '../time.ts'

const grantsAnswer = z.looseObject({ items: z.array(z.looseObject(standingGrant.shape)) })

export function addGrantsCommand(parent: Command): void {
  withConnectionOptions(
    parent.command('grants').description('standing grants: what may run again without asking, how often, until when'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals grants\n  nightshift approvals revoke grt_01k…')
    .action(async (options: ConnectionOptions) => {
      const { api } = connect(options)
      const { items } = grantsAnswer.parse(await api.get('/api/v1/grants'))
      if (options.json) return printJson(items)
      if (items.length === 0) return printNote('Nothing was granted.')
      const rows = items.map((each) => [
        inert(each.id),
        inert(each.tool),
        `${each.usesLeft} of ${each.uses}`,
        each.revokedAt ? 'revoked' : formatMoment(each.expiresAt),
        inert(`${each.targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')}, by ${each.grantedBy}`),
      ])
      print(formatTable(['GRANT', 'TOOL', 'LEFT', 'UNTIL', 'FOR'], rows, 4))
    })
}

export function addRevokeCommand(parent: Command): void {
  withConnectionOptions(
    parent.command('revoke').description('end a standing grant at once').argument('<id>', 'as grt_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals revoke grt_01k…')
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const ended = await api.post(`/api/v1/grants/${encodeURIComponent(id)}/revoke`)
      if (options.json) return printJson(ended)
      printNote(`${inert(id)} is over: the action is asked about again.`)
    })
}
