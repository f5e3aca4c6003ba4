import type { Command } from 'commander'
import { z } from 'zod'
import { type ApiClient, listAll } from '../api.ts'
import { type ConnectionOptions, connect, withConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../errors.ts'
import { formatMoment } from '../ui/format.ts'
import { formatTable } from '../ui/table.ts'
import { print, printJson, printNote } from '../ui/terminal.ts'
import { inert } from '../ui/text.ts'
import { getStoredSetting, toSettingPath } from './settings.ts'

const revision = z.looseObject({
  version: z.number().int(),
  oldValue: z.string().nullable(),
  newValue: z.string().nullable(),
  actor: z.string().nullable(),
  reason: z.string().nullable(),
  at: z.string(),
})
type Revision = z.infer<typeof revision>

function listRevisions(api: ApiClient, key: string): Promise<Revision[]> {
  return listAll(api, `${toSettingPath(key)}/revisions?limit=200`, revision)
}

export function addHistoryCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('history')
      .description('every change of a setting, newest first: who, when, why')
      .argument('<key>', 'as agent.max_turns'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config history agent.max_turns')
    .action(async (key: string, options: ConnectionOptions) => {
      const { api } = connect(options)
      await getStoredSetting(api, key)
      const all = await listRevisions(api, key)
      if (options.json) return printJson(all)
      if (all.length === 0) return printNote(`${key} was never set.`)
      const rows = all.map(({ version, oldValue, newValue, actor, reason, at }) => [
        String(version),
        formatMoment(at),
        inert(actor ?? 'unknown (by SQL)'),
        inert(`${oldValue ?? '(not set)'} → ${newValue ?? '(not set)'}${reason ? `  (${reason})` : ''}`),
      ])
      print(formatTable(['VERSION', 'WHEN', 'WHO', 'CHANGE'], rows, 3))
    })
}

export function addRollbackCommand(parent: Command): void {
  withConnectionOptions(
    parent
      .command('rollback')
      .description('set a setting to its value at an earlier version, as a new change')
      .argument('<key>', 'as agent.max_turns')
      .argument('<version>', 'as "config history" numbers them')
      .option('--reason <text>', 'why, for the history'),
  )
    .addHelpText('after', '\nExample:\n  nightshift config rollback agent.max_turns 3 --reason "12 were too few"')
    .action(async (key: string, version: string, options: ConnectionOptions & { reason?: string }) => {
      const { api } = connect(options)
      const before = await getStoredSetting(api, key)
      const wanted = (await listRevisions(api, key)).find((each) => String(each.version) === version)
      if (!wanted) throw new CommandFailed('notFound', `${key} has no version ${inert(version)}.`)
      if (wanted.newValue === null) throw new CommandFailed('usage', `At version ${version} ${key} was not set.`)
      if (key.endsWith('.secret')) {
        throw new CommandFailed('usage', `${key} is a secret: its old values cannot be read. Set it again.`)
      }
      const reason = options.reason ?? `back to version ${version}`
      const headers = { 'if-match': `"${before?.version ?? 0}"` }
      const answer = await api.put(toSettingPath(key), { value: wanted.newValue, reason }, headers)
      if (options.json) return printJson(answer)
      printNote(`${key} is ${inert(wanted.newValue)} again, as at version ${version}.`)
    })
}
