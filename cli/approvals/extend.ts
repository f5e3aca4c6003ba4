import type { Command } from 'commander'
import { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import { data, json } from '../terminal.ts'
import { moment } from '../time.ts'
import { toldByStatus } from './decision-token.ts'

const extended = z.looseObject({ expiresAt: z.string() })

export function extendApproval(parent: Command): void {
  asking(
    parent
      .command('extend')
      .description('give a question 15 more minutes, at most until four hours after it was asked')
      .argument('<id>', 'as apr_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals extend apr_01k…')
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      const answer = await toldByStatus(api, id, async () =>
        extended.parse(await api.post(`/api/v1/approvals/${encodeURIComponent(id)}/extend`)),
      )
      if (options.json) return json(answer)
      data(`${id} can be decided until ${moment(answer.expiresAt)}.`)
    })
}
