import type { Command } from 'commander'
import { z } from 'zod'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { print, printJson } from '../terminal.ts'
import { formatMoment } from '../time.ts'
import { runDecisionStep } from './decision-token.ts'

const extendAnswer = z.looseObject({ expiresAt: z.string() })

export function addExtendCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('extend')
      .description('give a question 15 more minutes, at most until four hours after it was asked')
      .argument('<id>', 'as apr_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift approvals extend apr_01k…')
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const answer = await runDecisionStep(api, id, async () =>
        extendAnswer.parse(await api.post(`/api/v1/approvals/${encodeURIComponent(id)}/extend`)),
      )
      if (options.json) return printJson(answer)
      print(`${id} can be decided until ${formatMoment(answer.expiresAt)}.`)
    })
}
