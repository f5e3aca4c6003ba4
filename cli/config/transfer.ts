import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { parseSetting, settingOf } from '../../domain/setting.ts'
import { settingInForce, storedSetting } from '../../domain/setting-row.ts'
import { type ApiClient, ApiProblem } from '../api.ts'
import type { CliCommand, ConnectionOptions } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { listAll } from '../read-api.ts'
import { formatTable } from '../ui/table.ts'
import { inert, inertJsonText, print, printJson, printNote } from '../ui/terminal.ts'

const stored = storedSetting.pick({ key: true, value: true, version: true, locked: true, problem: true }).loose()
type CurrentSetting = z.infer<typeof stored>

/**
 * Returns the stored value of a key. Null for a setting that was not set. Throws CommandFailed
 * 'notFound' for an unknown key.
 */
export async function getStoredSetting(api: ApiClient, key: string): Promise<CurrentSetting | null> {
  if (!settingOf(key)) {
    throw new CommandFailed('notFound', `There is no setting ${key}; "nightshift config list" shows all settings.`)
  }
  try {
    return stored.parse(await api.get(toSettingPath(key)))
  } catch (error) {
    if (error instanceof ApiProblem && error.problem.status === 404) return null
    throw error
  }
}

/** Lists all settings that were set. */
export function listStoredSettings(api: ApiClient): Promise<CurrentSetting[]> {
  return listAll(api, '/api/v1/config', stored)
}

export function toSettingPath(key: string): string {
  return `/api/v1/config/${encodeURIComponent(key)}`
}

// Accepts any source of a value, because a newer API may have further sources.
const effective = settingInForce
  .extend({ source: z.string(), problem: settingInForce.shape.problem.optional() })
  .loose()
type EffectiveSetting = z.infer<typeof effective>

/**
 * Lists every setting with its value in force. With a type, the values are those for an
 * investigation of that type.
 */
export async function listEffectiveSettings(api: ApiClient, type?: string): Promise<EffectiveSetting[]> {
  const query = type ? `?${new URLSearchParams({ type })}` : ''
  return z.looseObject({ items: z.array(effective) }).parse(await api.get(`/api/v1/config/effective${query}`)).items
}

/**
 * Returns the value in force for one key. `agent.max_turns.disk_pressure` is `agent.max_turns` for
 * that type.
 */
export async function getEffectiveSetting(api: ApiClient, key: string): Promise<EffectiveSetting | null> {
  const setting = settingOf(key)
  const name = setting?.family ? setting.key.slice(0, -2) : key
  const type = setting?.family && name.startsWith('agent.') ? key.slice(name.length + 1) : undefined
  if (setting?.family && !type) return { name: key, key, value: setting.fallback, source: 'default' }
  return (await listEffectiveSettings(api, type)).find((each) => each.name === name) ?? null
}

/** Describes where a value comes from. */
export function describeSource({ key, source }: EffectiveSetting): string {
  return source === 'environment' ? `environment variable ${key}` : source
}

export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return '(not set)'
  return typeof value === 'string' ? value : inertJsonText(value)
}

const exported = z.record(z.string(), z.string())
type Change = { key: string; from: string | null; to: string; version: number }

const isSecret = (key: string) => key.endsWith('.secret')

export function addExportCommand(parent: CliCommand): void {
  parent
    .command('export')
    .description('the settings that were set, as JSON that "config import" reads; without secrets')
    .connected('\nExample:\n  nightshift config export > settings.json')
    .calls(async (api, _options: ConnectionOptions) => {
      const kept = (await listStoredSettings(api)).filter(({ key, value }) => value !== null && !isSecret(key))
      printJson(Object.fromEntries(kept.map(({ key, value }) => [key, value])))
    })
}

export function addDiffCommand(parent: CliCommand): void {
  parent
    .command('diff')
    .description('what an exported file would change here')
    .argument('<file>', 'from "config export"; - for stdin')
    .connected('\nExample:\n  nightshift config diff settings.json\n\nExits with 1 when something differs.')
    .calls(async (api, file: string, options: ConnectionOptions) => {
      const changes = await listChanges(api, readExport(file))
      printChanges(changes, options)
      if (changes.length > 0) throw new CommandFailed('error', '')
    })
}

export function addImportCommand(parent: CliCommand): void {
  parent
    .command('import')
    .description('set the values of an exported file that differ; other settings stay')
    .argument('<file>', 'from "config export"; - for stdin')
    .option('--reason <text>', 'reason, recorded in the history')
    .connected('\nExample:\n  nightshift config import settings.json --reason "as in staging"')
    .calls(async (api, file: string, options: ConnectionOptions & { reason?: string }) => {
      const changes = await listChanges(api, readExport(file))
      for (const { key, to, version } of changes) {
        await api.put(toSettingPath(key), { value: to, reason: options.reason ?? null }, { 'if-match': `"${version}"` })
      }
      printChanges(changes, options)
      if (!options.json) printNote(`${changes.length} settings were set.`)
    })
}

/** Reads the file and checks every entry before any is set, so that an import is never partial. */
function readExport(file: string): Record<string, string> {
  let text: string
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8')
  } catch {
    throw new CommandFailed('notFound', `${file} cannot be read.`)
  }
  const parsed = exported.safeParse(parseJson(text))
  if (!parsed.success)
    throw new CommandFailed('usage', `${file} is not a JSON object of strings, as "config export" writes it.`)
  const wrong = Object.entries(parsed.data).flatMap(([key, value]) => {
    const checked = parseSetting(key, value)
    return checked.ok ? [] : [`${inert(key)}: ${checked.reason}`]
  })
  if (wrong.length > 0) throw new CommandFailed('usage', `Nothing was set. ${wrong.join('; ')}.`)
  return parsed.data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function listChanges(api: ApiClient, wanted: Record<string, string>): Promise<Change[]> {
  const stored = new Map<string, CurrentSetting>((await listStoredSettings(api)).map((each) => [each.key, each]))
  return Object.entries(wanted).flatMap(([key, to]) => {
    const now = stored.get(key)
    if (now?.value === to) return []
    return [{ key, from: now?.value ?? null, to, version: now?.version ?? 0 }]
  })
}

function printChanges(changes: Change[], { json: asJson }: ConnectionOptions): void {
  if (asJson) {
    printJson(changes)
    return
  }
  if (changes.length === 0) {
    printNote('Nothing differs.')
    return
  }
  const rows = changes.map(({ key, from, to }) => [inert(key), inert(`${from ?? '(not set)'} → ${to}`)])
  print(formatTable(['KEY', 'CHANGE'], rows, 1))
}
