import type { Command } from 'commander'
import { approvalCard } from '../approval-card.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { readApproval } from '../core.ts'
import { data, json, note } from '../terminal.ts'
import { command } from '../where.ts'

export function showApproval(parent: Command): void {
  asking(
    parent
      .command('show')
      .description('what exactly is asked, why, and what would happen')
      .argument('<id>', 'as apr_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals show apr_01k…')
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      const approval = await readApproval(api, id)
      if (options.json) return json(approval)
      data(approvalCard(approval))
      if (approval.status === 'pending') {
        note(`\nDecide: ${command(`approvals approve ${id}`)}\n        ${command(`approvals deny ${id} --reason "…"`)}`)
      }
    })
}
