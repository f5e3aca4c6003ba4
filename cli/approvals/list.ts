import type { Command } from 'commander'
import { approvalStatus } from '../../domain/approval.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { apiApproval, listAll } from '../core.ts'
import { inert } from '../inert.ts'
import { parseOneOf, parseWholeNumber } from '../one-of.ts'
import { formatTable } from '../table.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatSpan } from '../time.ts'
import { paintState } from '../word.ts'

type ListOptions = ConnectionOptions & { status: string; limit: number }

export function addListCommand(parent: Command): void {
  const statuses = [...approvalStatus.options, 'all']
  withConnectionOptions(
    parent
      .command('list')
      .description('actions that wait for a person, or that one decided')
      .option('--status <status>', `one of ${statuses.join(', ')}`, parseOneOf(statuses), 'pending')
      .option('--limit <n>', 'how many at most', parseWholeNumber, 25),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals list\n  nightshift approvals list --status all --json')
    .action(async (options: ListOptions) => {
      const { api } = connect(options)
      const query = options.status === 'all' ? '' : `?${new URLSearchParams({ status: options.status })}`
      const approvals = await listAll(api, `/api/v1/approvals${query}`, apiApproval, options.limit)
      if (options.json) return printJson(approvals)
      if (approvals.length === 0)
        return printNote(options.status === 'pending' ? 'Nothing waits for a person.' : 'None.')
      const rows = approvals.map((each) => [
        inert(each.id),
        paintState(each.status),
        paintState(each.risk),
        each.status === 'pending' ? `in ${formatSpan(Date.parse(each.expiresAt) - Date.now())}` : '',
        inert(`${each.tool}: ${each.dryRun.summary}`),
      ])
      print(formatTable(['ID', 'STATUS', 'RISK', 'EXPIRES', 'ACTION'], rows, 4))
    })
}
