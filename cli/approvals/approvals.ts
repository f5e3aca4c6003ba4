import type { Command } from 'commander'
import { addApproveCommand, addDenyCommand } from './decide.ts'
import { addExtendCommand } from './extend.ts'
import { addGrantsCommand, addRevokeCommand } from './grants.ts'
import { addListCommand } from './list.ts'
import { addShowCommand } from './show.ts'
import { addTokenCommand } from './token.ts'
import { addWaitCommand, addWatchCommand } from './watch.ts'

export function addApprovalsCommand(program: Command): void {
  const parent = program
    .command('approvals')
    .description('what the agent asks of a person: see it, decide it')
    .addHelpText('after', '\nExample:\n  nightshift approvals list\n  nightshift approvals approve apr_01k…')
  addListCommand(parent)
  addShowCommand(parent)
  addApproveCommand(parent)
  addDenyCommand(parent)
  addExtendCommand(parent)
  addTokenCommand(parent)
  addWatchCommand(parent)
  addWaitCommand(parent)
  addGrantsCommand(parent)
  addRevokeCommand(parent)
}
