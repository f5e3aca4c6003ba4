import type { Command } from 'commander'
import { z } from 'zod'
import { standingGrant } from '../../domain/approval.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'

const answer = z.looseObject({ items: z.array(z.looseObject(standingGrant.shape)) })

export function listGrants(parent: Command): void {
  asking(
    parent.command('grants').description('standing grants: what may run again without asking, how often, until when'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals grants\n  nightshift approvals revoke grt_01k…')
    .action(async (options: Asking) => {
      const { api } = connected(options)
      const { items } = answer.parse(await api.get('/api/v1/grants'))
      if (options.json) return json(items)
      if (items.length === 0) return note('Nothing was granted.')
      const rows = items.map((each) => [
        inert(each.id),
        inert(each.tool),
        `${each.usesLeft} of ${each.uses}`,
        each.revokedAt ? 'revoked' : moment(each.expiresAt),
        inert(`${each.targets.map(({ kind, id }) => `${kind} ${id}`).join(', ')}, by ${each.grantedBy}`),
      ])
      data(table(['GRANT', 'TOOL', 'LEFT', 'UNTIL', 'FOR'], rows, 4))
    })
}

export function revokeGrant(parent: Command): void {
  asking(parent.command('revoke').description('end a standing grant at once').argument('<id>', 'as grt_…'))
    .addHelpText('after', '\nExample:\n  nightshift approvals revoke grt_01k…')
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      const ended = await api.post(`/api/v1/grants/${encodeURIComponent(id)}/revoke`)
      if (options.json) return json(ended)
      note(`${inert(id)} is over: the action is asked about again.`)
    })
}
