import type { Command } from 'commander'
import type { Decision } from '../../domain/approval.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { readApproval } from '../core.ts'
import { parseOneOf } from '../one-of.ts'
import { defaultTemporal, readTemporalSettings } from '../temporal-here.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatMoment } from '../time.ts'
import { findTemporalProgram, formatUpdateCommand } from '../workflow-update.ts'
import { mintToken } from './decision-token.ts'

const verdicts = ['approve', 'deny'] as const

export function addTokenCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('token')
      .description('a token to approve or deny through Temporal; prints it, and how to use it on stderr')
      .argument('<id>', 'as apr_…')
      .argument('<verdict>', 'approve or deny: the token does this one, and nothing else', parseOneOf(verdicts)),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals token apr_01k… approve')
    .action(async (id: string, verdict: Decision, options: ConnectionOptions) => {
      const { api, where } = connect(options)
      const approval = await readApproval(api, id)
      const minted = await mintToken(api, id, verdict)
      if (options.json) return printJson(minted)
      print(minted.token)
      const temporal = readTemporalSettings(where.run) ?? defaultTemporal
      const program = await findTemporalProgram(where.run)
      const input = {
        decision: verdict,
        token: minted.token,
        ...(verdict === 'deny' && { reason: 'why not; the agent reads it' }),
      }
      printNote(`Good once, until ${formatMoment(minted.expiresAt)}. To ${verdict} ${id}:\n`)
      printNote(formatUpdateCommand(program, temporal, approval, `'${JSON.stringify(input)}'`))
      printNote('\nIt answers what came of it; so does "nightshift approvals show".')
    })
}
