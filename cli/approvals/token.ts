import type { Command } from 'commander'
import type { Decision } from '../../domain/approval.ts'
import { type Asking, asking, connected } from '../connection.ts'
import { readApproval } from '../core.ts'
import { oneOf } from '../one-of.ts'
import { defaultPlace, temporalHere } from '../temporal-here.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'
import { temporalProgram, updateCommand } from '../workflow-update.ts'
import { mintToken } from './decision-token.ts'

const verdicts = ['approve', 'deny'] as const

export function tokenForApproval(parent: Command): void {
  asking(
    parent
      .command('token')
      .description('a token to approve or deny through Temporal; prints it, and how to use it on stderr')
      .argument('<id>', 'as apr_…')
      .argument('<verdict>', 'approve or deny: the token does this one, and nothing else', oneOf(verdicts)),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals token apr_01k… approve')
    .action(async (id: string, verdict: Decision, options: Asking) => {
      const { api, where } = connected(options)
      const approval = await readApproval(api, id)
      const minted = await mintToken(api, id, verdict)
      if (options.json) return json(minted)
      data(minted.token)
      const temporal = temporalHere(where.run) ?? defaultPlace
      const program = await temporalProgram(where.run)
      const input = {
        decision: verdict,
        token: minted.token,
        ...(verdict === 'deny' && { reason: 'why not; the agent reads it' }),
      }
      note(`Good once, until ${moment(minted.expiresAt)}. To ${verdict} ${id}:\n`)
      note(updateCommand(program, temporal, approval, `'${JSON.stringify(input)}'`))
      note('\nIt answers what came of it; so does "nightshift approvals show".')
    })
}
