import type { Command } from 'commander'
import { z } from 'zod'
import { type Asking, asking, connected } from '../connection.ts'
import type { Core } from '../core.ts'
import { listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { table } from '../table.ts'
import { data, json, note } from '../terminal.ts'
import { moment } from '../time.ts'
import { pathOf, storedSetting } from './stored.ts'

const revision = z.looseObject({
  version: z.number().int(),
  oldValue: z.string().nullable(),
  newValue: z.string().nullable(),
  actor: z.string().nullable(),
  reason: z.string().nullable(),
  at: z.string(),
})
type Revision = z.infer<typeof revision>

function revisions(api: Core, key: string): Promise<Revision[]> {
  return listAll(api, `${pathOf(key)}/revisions?limit=200`, revision)
}

export function configHistory(parent: Command): void {
  asking(
    parent
      .command('history')
      .description('every change of a setting, newest first: who, when, why')
      .argument('<key>', 'as agent.max_turns'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config history agent.max_turns')
    .action(async (key: string, options: Asking) => {
      const { api } = connected(options)
      await storedSetting(api, key)
      const all = await revisions(api, key)
      if (options.json) return json(all)
      if (all.length === 0) return note(`${key} was never set.`)
      const rows = all.map(({ version, oldValue, newValue, actor, reason, at }) => [
        String(version),
        moment(at),
        inert(actor ?? 'somebody with SQL'),
        inert(`${oldValue ?? '(not set)'} → ${newValue ?? '(not set)'}${reason ? `  (${reason})` : ''}`),
      ])
      data(table(['VERSION', 'WHEN', 'WHO', 'CHANGE'], rows, 3))
    })
}

export function rollbackConfig(parent: Command): void {
  asking(
    parent
      .command('rollback')
      .description('set a setting to what it was at an earlier version; that is a change like any other')
      .argument('<key>', 'as agent.max_turns')
      .argument('<version>', 'as "config history" numbers them')
      .option('--reason <text>', 'why, for those who ask later'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config rollback agent.max_turns 3 --reason "12 were too few"')
    .action(async (key: string, version: string, options: Asking & { reason?: string }) => {
      const { api } = connected(options)
      const before = await storedSetting(api, key)
      const wanted = (await revisions(api, key)).find((each) => String(each.version) === version)
      if (!wanted) throw new CommandFailed('notFound', `${key} has no version ${inert(version)}.`)
      if (wanted.newValue === null) throw new CommandFailed('usage', `At version ${version} ${key} was not set.`)
      if (key.endsWith('.secret')) {
        throw new CommandFailed('usage', `${key} is a secret: its old values are shown to nobody. Set it anew.`)
      }
      const reason = options.reason ?? `back to version ${version}`
      const headers = { 'if-match': `"${before?.version ?? 0}"` }
      const answer = await api.put(pathOf(key), { value: wanted.newValue, reason }, headers)
      if (options.json) return json(answer)
      note(`${key} is ${inert(wanted.newValue)} again, as at version ${version}.`)
    })
}
