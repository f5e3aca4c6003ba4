import type { Command } from 'commander'
import { type Asking, asking, connected } from '../connection.ts'
import { readApproval } from '../core.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'
import { signalCommand, temporalProgram } from '../workflow-signal.ts'
import { mintToken } from './decision-token.ts'

export function tokenForApproval(parent: Command): void {
  asking(
    parent
      .command('token')
      .description('a token to decide one approval through Temporal; prints it, and how to use it on stderr')
      .argument('<id>', 'as apr_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals token apr_01k…')
    .action(async (id: string, options: Asking) => {
      const { api, where } = connected(options)
      const approval = await readApproval(api, id)
      const minted = await mintToken(api, id)
      if (options.json) return json(minted)
      data(minted.token)
      const address = where.run?.temporalAddress ?? process.env.TEMPORAL_ADDRESS ?? '127.0.0.1:7233'
      const program = await temporalProgram(where.run)
      note(`Good for one decision about ${id}, until ${moment(minted.expiresAt)}. To approve:\n`)
      note(signalCommand(program, address, approval, 'approve', `'${JSON.stringify({ token: minted.token })}'`))
      note('\nTo deny, which needs a reason that the agent reads:\n')
      const denial = JSON.stringify({ token: minted.token, reason: 'why not' })
      note(signalCommand(program, address, approval, 'deny', `'${denial}'`))
      note('\nA signal is not answered; "nightshift approvals show" tells what came of it.')
    })
}
