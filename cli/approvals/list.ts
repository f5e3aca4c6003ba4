import type { Command } from 'commander'
import { approvalStatus } from '../../domain/approval.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { anApproval, listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { oneOf, whole } from '../one-of.ts'
import { table } from '../table.ts'
import { data, json, note } from '../terminal.ts'
import { span } from '../time.ts'
import { word } from '../word.ts'

type Options = Asking & { status: string; limit: number }

export function listApprovals(parent: Command): void {
  const statuses = [...approvalStatus.options, 'all']
  asking(
    parent
      .command('list')
      .description('actions that wait for a person, or that one decided')
      .option('--status <status>', `one of ${statuses.join(', ')}`, oneOf(statuses), 'pending')
      .option('--limit <n>', 'how many at most', whole, 25),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals list\n  nightshift approvals list --status all --json')
    .action(async (options: Options) => {
      const { api } = connected(options)
      const query = options.status === 'all' ? '' : `?${new URLSearchParams({ status: options.status })}`
      const approvals = await listAll(api, `/api/v1/approvals${query}`, anApproval, options.limit)
      if (options.json) return json(approvals)
      if (approvals.length === 0) return note(options.status === 'pending' ? 'Nothing waits for a person.' : 'None.')
      const rows = approvals.map((each) => [
        inert(each.id),
        word(each.status),
        word(each.risk),
        each.status === 'pending' ? `in ${span(Date.parse(each.expiresAt) - Date.now())}` : '',
        inert(`${each.tool}: ${each.dryRun.summary}`),
      ])
      data(table(['ID', 'STATUS', 'RISK', 'EXPIRES', 'ACTION'], rows, 4))
    })
}
