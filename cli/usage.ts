import { formatNumber } from '../domain/format.ts'
import { formatDollars } from '../domain/price.ts'
import type { SpentOn } from '../domain/status.ts'
import type { Usage } from '../domain/usage.ts'
import type { CliCommand, ConnectionOptions } from './connection.ts'
import { formatTable } from './ui/table.ts'
import { inert, print, printJson } from './ui/terminal.ts'

export function addUsageCommand(program: CliCommand): void {
  program
    .command('usage')
    .description('tokens and approvals, and what they cost')
    .connected()
    .option('--days <n>', 'number of days, today included', '7')
    .addHelpText('after', '\nExample:\n  nightshift usage --days 30')
    .calls(async (api, { days, ...options }: ConnectionOptions & { days: string }) => {
      const used = (await api.get(`/api/v1/usage?days=${encodeURIComponent(days)}`)) as Usage
      if (options.json) return printJson(used)
      const { money, models } = used
      for (const period of ['day', 'month'] as const) {
        const { dollars, cap } = money[period]
        const of = cap === null ? `no cap (agent.budget_${period})` : `of ${formatDollars(cap)}`
        print(`${period === 'day' ? 'Today' : 'Month'} (UTC)  ${formatDollars(dollars)}, ${of}`)
      }
      print(`\nOver ${days} ${days === '1' ? 'day' : 'days'}:`)
      const tokens = new Map(
        models.map(({ model, promptTokens, completionTokens }) => [model, promptTokens + completionTokens]),
      )
      const rows = (list: SpentOn[], toTokens: (name: string) => string) =>
        list.map(({ name, answers, dollars, assumed }) => [
          inert(name),
          String(answers),
          toTokens(name),
          `${formatDollars(dollars)}${assumed > 0 ? ' at the highest price' : ''}`,
        ])
      const ofModel = (name: string) => formatNumber(tokens.get(name) ?? 0)
      print(formatTable(['MODEL', 'ANSWERS', 'TOKENS', 'COST'], rows(money.byModel, ofModel), 0))
      for (const { model, answers, assumed } of models.filter((each) => each.assumed > 0))
        print(
          `For ${assumed} of ${answers} answers of ${inert(model)} the tokens are estimated from the lengths of the prompt and the answer, because the server reports no token usage, or an impossible number.`,
        )
      print(
        formatTable(
          ['TYPE', 'ANSWERS', '', 'COST'],
          rows(money.byType, () => ''),
          0,
        ),
      )
      print(
        formatTable(
          ['DAY (UTC)', 'ANSWERS', '', 'COST'],
          rows(money.byDay, () => ''),
          0,
        ),
      )
    })
}
