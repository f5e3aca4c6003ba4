import type { Command } from 'commander'
import { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'
import { anExpectation } from './an-expectation.ts'

const answer = z.looseObject({ items: z.array(anExpectation) })

export function expectationsCommand(program: Command): void {
  const parent = program
    .command('expectations')
    .description('what is marked as expected, and taking it back')
    .addHelpText('after', '\nExample:\n  nightshift expectations list\n  nightshift expectations end exp_01k…')
  listExpectations(parent)
  endExpectation(parent)
}

function listExpectations(parent: Command): void {
  asking(
    parent
      .command('list')
      .description('marks in force; with --all those that are over too')
      .option('--all', 'those that are over too'),
  )
    .addHelpText('after', '\nExample:\n  nightshift expectations list --json')
    .action(async (options: Asking & { all?: boolean }) => {
      const { api } = connected(options)
      const { items } = answer.parse(await api.get('/api/v1/expectations'))
      const shown = options.all ? items : items.filter(({ inForce }) => inForce)
      if (options.json) return json(shown)
      if (shown.length === 0) return note('Nothing is marked as expected. Mark it with "nightshift incidents expect".')
      const rows = shown.map((each) => [
        inert(each.id),
        each.subject,
        each.inForce ? moment(each.until) : each.endedAt ? 'taken back' : 'over',
        inert(`${each.about}, by ${each.createdBy}: ${each.reason}`),
      ])
      data(table(['MARK', 'ON', 'UNTIL', 'WHAT AND WHY'], rows, 3))
    })
}

function endExpectation(parent: Command): void {
  asking(
    parent
      .command('end')
      .description('take a mark back: what fires from now on goes the normal way')
      .argument('<id>', 'as exp_…'),
  )
    .addHelpText('after', '\nExample:\n  nightshift expectations end exp_01k…')
    .action(async (id: string, options: Asking) => {
      const { api } = connected(options)
      const ended = await api.post(`/api/v1/expectations/${encodeURIComponent(id)}/end`)
      if (options.json) return json(ended)
      note(`${inert(id)} is over: people are notified of what fires, and it is investigated.`)
    })
}
