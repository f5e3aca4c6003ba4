import type { Command } from 'commander'
import { formatApproval } from '../approval-card.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { readApproval } from '../core.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { commandLine } from '../where.ts'

export function addShowCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('show')
      .description('what exactly is asked, why, and what would happen')
      .argument('<id>', 'as apr_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals show apr_01k…')
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const approval = await readApproval(api, id)
      if (options.json) return printJson(approval)
      print(formatApproval(approval))
      if (approval.status === 'pending') {
        printNote(
          `\nDecide: ${commandLine(`approvals approve ${id}`)}\n        ${commandLine(`approvals deny ${id} --reason "…"`)}`,
        )
      }
    })
}
