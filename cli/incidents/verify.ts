import type { Command } from 'commander'
import { z } from 'zod'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { paint, print, printJson } from '../terminal.ts'

const verifyAnswer = z.looseObject({
  ok: z.boolean(),
  events: z.number().int(),
  headHash: z.string(),
  problem: z.object({ seq: z.number().int(), what: z.string() }).nullable(),
})

export function addVerifyCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('verify')
      .description('recompute the hash chain of the timeline: has anybody altered it?')
      .argument('<id>', 'as inc_…')
      .option('--head <hash>', 'a hash that was handed out (by a webhook, say): it must still be in the chain'),
  )
    .addHelpText('after', '\nExample:\n  nightshift incidents verify inc_01k… --head 9f86d081…')
    .action(async (id: string, options: ConnectionOptions & { head?: string }) => {
      const { api } = connect(options)
      const query = options.head ? `?${new URLSearchParams({ head: options.head })}` : ''
      const answer = verifyAnswer.parse(await api.get(`/api/v1/incidents/${encodeURIComponent(id)}/verify${query}`))
      if (options.json) printJson(answer)
      else if (answer.ok) {
        print(
          `${paint('green', '✔')} The chain of ${id} holds: ${answer.events} rows, each hashed over the one before it.`,
        )
        print(`  head ${inert(answer.headHash)}`)
        if (options.head) print('  The hash you named is in it, so nothing up to there was cut off.')
      }
      if (answer.ok) return
      const where = answer.problem
        ? `row ${answer.problem.seq}: ${inert(answer.problem.what)}`
        : 'it does not say where'
      throw new CommandFailed('error', options.json ? '' : `The chain of ${id} does NOT hold at ${where}.`)
    })
}
