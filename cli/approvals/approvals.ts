import type { Command } from 'commander'
import { approveApproval, denyApproval } from './decide.ts'
import { extendApproval } from './extend.ts'
import { listGrants, revokeGrant } from './grants.ts'
import { listApprovals } from './list.ts'
import { showApproval } from './show.ts'
import { tokenForApproval } from './token.ts'
import { waitForApproval, watchApprovals } from './watch.ts'

export function approvalsCommand(program: Command): void {
  const parent = program
    .command('approvals')
    .description('what the agent asks of a person: see it, decide it')
    .addHelpText('after', '\nExample:\n  nightshift approvals list\n  nightshift approvals approve apr_01k…')
  listApprovals(parent)
  showApproval(parent)
  approveApproval(parent)
  denyApproval(parent)
  extendApproval(parent)
  tokenForApproval(parent)
  watchApprovals(parent)
  waitForApproval(parent)
  listGrants(parent)
  revokeGrant(parent)
}
