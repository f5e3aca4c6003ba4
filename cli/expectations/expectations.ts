import type { Command } from 'commander'
import { z } from 'zod'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { inert } from '../inert.ts'
import { formatTable } from '../table.ts'
import { print, printJson, printNote } from '../terminal.ts'
import { formatMoment } from '../time.ts'
import { apiExpectation } from './an-expectation.ts'

const expectationsAnswer = z.looseObject({ items: z.array(apiExpectation) })

export function addExpectationsCommand(program: Command): void {
  const parent = program
    .command('expectations')
    .description('what is marked as expected, and taking it back')
    .addHelpText('after', '\nExample:\n  nightshift expectations list\n  nightshift expectations end exp_01k…')
  addListCommand(parent)
  addEndCommand(parent)
}

function addListCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('list')
      .description('marks in force; with --all those that are over too')
      .option('--all', 'those that are over too'),
  )
    .addHelpText('after', '\nExample:\n  nightshift expectations list --json')
    .action(async (options: ConnectionOptions & { all?: boolean }) => {
      const { api } = connect(options)
      const { items } = expectationsAnswer.parse(await api.get('/api/v1/expectations'))
      const shown = options.all ? items : items.filter(({ inForce }) => inForce)
      if (options.json) return printJson(shown)
      if (shown.length === 0)
        return printNote('Nothing is marked as expected. Mark it with "nightshift incidents expect".')
      const rows = shown.map((each) => [
        inert(each.id),
        each.subject,
        each.inForce ? formatMoment(each.until) : each.endedAt ? 'taken back' : 'over',
        inert(`${each.about}, by ${each.createdBy}: ${each.reason}`),
      ])
      print(formatTable(['MARK', 'ON', 'UNTIL', 'WHAT AND WHY'], rows, 3))
    })
}

function addEndCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('end')
      .description('take a mark back: what fires from now on goes the normal way')
      .argument('<id>', 'as exp_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift expectations end exp_01k…')
    .action(async (id: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      const ended = await api.post(`/api/v1/expectations/${encodeURIComponent(id)}/end`)
      if (options.json) return printJson(ended)
      printNote(`${inert(id)} is over: people are notified of what fires, and it is investigated.`)
    })
}
