import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { formatList, formatWithUnit } from '../../domain/format.ts'
import { parseSetting, settingOf, webhookNames } from '../../domain/setting.ts'
import { environmentVariable, type SettingRevision, settingRevision, webhookTest } from '../../domain/setting-row.ts'
import type { ApiClient } from '../api.ts'
import { type CliCommand, type ConnectionOptions, connect } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { listAll } from '../read-api.ts'
import { formatMoment, formatTable, printList } from '../ui/table.ts'
import { inert, paint, print, printJson, printNote } from '../ui/terminal.ts'
import {
  addDiffCommand,
  addExportCommand,
  addImportCommand,
  describeSource,
  formatValue,
  getEffectiveSetting,
  getStoredSetting,
  listEffectiveSettings,
  listStoredSettings,
  toSettingPath,
} from './transfer.ts'

export function addConfigCommand(program: CliCommand): void {
  const parent = program
    .command('config')
    .description('settings that can change while Nightshift runs')
    .addHelpText('after', '\nExample:\n  nightshift config list\n  nightshift config set agent.paused true')
  addGetCommand(parent)
  addSetCommand(parent)
  addListCommand(parent)
  addHistoryCommand(parent)
  addRollbackCommand(parent)
  addDiffCommand(parent)
  addExportCommand(parent)
  addImportCommand(parent)
  addTestCommand(parent)
  addEnvironmentCommand(parent)
}

function addGetCommand(parent: CliCommand): void {
  parent
    .command('get')
    .description('the value in force, and the stored value')
    .argument('<key>', 'as agent.max_turns')
    .connected('\nExample:\n  nightshift config get agent.max_turns')
    .calls(async (api, key: string, options: ConnectionOptions) => {
      const [stored, effective] = await Promise.all([getStoredSetting(api, key), getEffectiveSetting(api, key)])
      if (options.json) return printJson({ key, stored, effective })
      if (stored?.problem) printNote(`The stored value has no effect: ${inert(stored.problem)}.`)
      if (stored && !stored.problem && !stored.locked) return print(inert(formatValue(stored.value), { lines: true }))
      print(inert(formatValue(effective?.value), { lines: true }))
      if (effective) printNote(`From: ${inert(describeSource(effective))}.`)
    })
}

function addSetCommand(parent: CliCommand): void {
  parent
    .command('set')
    .description('change a setting; running investigations read it at their next cycle')
    .argument('<key>', 'as agent.max_turns.replication_lag')
    .argument('<value>', 'the new value; - reads it from stdin, which keeps secrets out of the shell history')
    .option('--reason <text>', 'reason, recorded in the history')
    .connected('\nExample:\n  nightshift config set agent.paused true --reason "maintenance until six"')
    .action(async (key: string, given: string, options: ConnectionOptions & { reason?: string }) => {
      const value = given === '-' ? readFileSync(0, 'utf8').trim() : given
      const parsed = parseSetting(key, value)
      if (!parsed.ok) {
        throw new CommandFailed(settingOf(key) ? 'usage' : 'notFound', `${key} was not changed: ${parsed.reason}.`)
      }
      const { api } = connect(options)
      const before = await getStoredSetting(api, key)
      // Fails if the setting has changed since it was read, so that no change is overwritten
      // unnoticed.
      const headers = { 'if-match': `"${before?.version ?? 0}"` }
      const answer = await api.put(toSettingPath(key), { value, reason: options.reason ?? null }, headers)
      if (options.json) return printJson(answer)
      printNote(`${key} is set.`)
    })
}

function addListCommand(parent: CliCommand): void {
  parent
    .command('list')
    .description('the settings in force, each with the source of its value')
    .option('--type <type>', 'only the values of this incident type')
    .connected('\nExample:\n  nightshift config list --type replication_lag')
    .calls(async (api, options: ConnectionOptions & { type?: string }) => {
      const settings = await listEffectiveSettings(api, options.type)
      if (options.json) return printJson(settings)
      const row = (name: string, source: string, value: unknown, problem?: string | null) => [
        inert(name),
        inert(source),
        inert(`${formatCounted(name, value)}${problem ? `  ! ${problem}` : ''}`),
      ]
      const names = new Set(settings.map(({ name }) => name))
      const stored = await listStoredSettings(api)
      // Shows the value of a setting as a person typed it, not as it was parsed.
      const typed = new Map(stored.filter(({ locked }) => !locked).map(({ key, value }) => [key, value]))
      const rows = [
        ...settings.map(({ name, source, value, problem }) => {
          // Some settings exist only per type or per tool, and have no general value.
          const family = settingOf(name) || options.type ? null : settingOf(`${name}.any`)
          return family
            ? row(family.key, 'default', family.fallback)
            : row(name, source, source === 'global' ? (typed.get(name) ?? value) : value, problem)
        }),
        ...stored
          .filter(({ key }) => !names.has(key))
          .map(({ key, value, problem }) => row(key, 'set', value, problem)),
      ]
      print(formatTable(['NAME', 'SOURCE', 'VALUE'], rows, 2))
    })
}

/** Formats a number with its unit, and returns anything else unchanged. */
function formatCounted(name: string, value: unknown): string {
  const unit = (settingOf(name.replace('*', 'any')) ?? settingOf(`${name}.any`))?.unit
  const isCounted = unit && (typeof value === 'number' || typeof value === 'string')
  return isCounted ? formatWithUnit(value, unit) : formatValue(value)
}

const tested = webhookTest.extend({ outcome: z.string() }).loose()

function addTestCommand(parent: CliCommand): void {
  const known = webhookNames.map((name) => `webhook.${name}`)
  parent
    .command('test')
    .description('send a test message to a webhook, and print what the receiver reports')
    .argument('<webhook>', known.join(', '))
    .connected('\nExample:\n  nightshift config test webhook.critical')
    .action(async (webhook: string, options: ConnectionOptions) => {
      if (!known.includes(webhook)) {
        throw new CommandFailed('usage', `${inert(webhook)} cannot be tested. Give ${formatList(known, 'or')}.`)
      }
      const { api } = connect(options)
      const answer = tested.parse(await api.post(`/api/v1/webhooks/${webhook.slice('webhook.'.length)}/test`))
      if (options.json) printJson(answer)
      else {
        const isSent = answer.outcome === 'sent'
        print(`${isSent ? paint('green', '✔') : paint('red', '✖')} ${webhook}: ${inert(answer.detail)}`)
        if (answer.said) printNote(`The receiver said: ${inert(answer.said)}`)
      }
      if (answer.outcome !== 'sent') throw new CommandFailed('error', '')
    })
}

const given = z.looseObject({ state: z.string(), value: z.string().nullable() })
// The worker's value is optional, because an API of an older release does not report it.
const variable = environmentVariable.extend({ state: z.string(), worker: given.nullish() }).loose()
const variables = z.looseObject({ items: z.array(variable), workerStartedAt: z.string().nullish() })

function addEnvironmentCommand(parent: CliCommand): void {
  parent
    .command('environment')
    .description(
      'the variables that the API process and the worker started with; secrets show only whether they are set',
    )
    .connected('\nExample:\n  nightshift config environment')
    .calls(async (api, options: ConnectionOptions) => {
      const { items, workerStartedAt } = variables.parse(await api.get('/api/v1/config/environment'))
      if (options.json) return printJson(items)
      const row = (names: [string, string], { state, value }: { state: string; value: string | null }) => [
        ...names.map((name) => inert(name)),
        inert(state.replaceAll('_', ' ')),
        inert(value ?? ''),
      ]
      const rows = items.flatMap(({ group, name, state, value, worker }) => {
        const own = row([group, name], { state, value })
        return worker ? [own, row(['', '  at the worker'], worker)] : [own]
      })
      print(formatTable(['PART', 'VARIABLE', 'IS', 'VALUE'], rows, 3))
      printNote(
        workerStartedAt
          ? `The worker started ${formatMoment(workerStartedAt)}. Where the value of the worker differs, a second line shows the value of the worker.`
          : 'No worker of this release has started yet. These variables are of the API process.',
      )
    })
}

const revision = settingRevision.loose()

function listRevisions(api: ApiClient, key: string): Promise<SettingRevision[]> {
  return listAll(api, `${toSettingPath(key)}/revisions?limit=200`, revision)
}

function addHistoryCommand(parent: CliCommand): void {
  parent
    .command('history')
    .description('every change of a setting, newest first: who, when, why')
    .argument('<key>', 'as agent.max_turns')
    .connected('\nExample:\n  nightshift config history agent.max_turns')
    .calls(async (api, key: string, options: ConnectionOptions) => {
      await getStoredSetting(api, key)
      const all = await listRevisions(api, key)
      printList(options, all, `${key} was never set.`, {
        VERSION: ({ version }) => String(version),
        WHEN: ({ at }) => formatMoment(at),
        WHO: ({ actor }) => inert(actor ?? 'unknown (by SQL)'),
        CHANGE: ({ oldValue, newValue, reason }) =>
          inert(`${oldValue ?? '(not set)'} → ${newValue ?? '(not set)'}${reason ? `  (${reason})` : ''}`),
      })
    })
}

function addRollbackCommand(parent: CliCommand): void {
  parent
    .command('rollback')
    .description('set a setting to its value at an earlier version, as a new change')
    .argument('<key>', 'as agent.max_turns')
    .argument('<version>', 'version number from "config history"')
    .option('--reason <text>', 'reason, recorded in the history')
    .connected('\nExample:\n  nightshift config rollback agent.max_turns 3 --reason "12 were too few"')
    .calls(async (api, key: string, version: string, options: ConnectionOptions & { reason?: string }) => {
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
