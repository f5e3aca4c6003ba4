import { z } from 'zod'
import { settingOf } from '../../domain/setting.ts'
import { settingInForce, storedSetting } from '../../domain/setting-row.ts'
import { type ApiClient, listAll } from '../api.ts'
import { ApiProblem, CommandFailed } from '../errors.ts'
import { inertJsonText } from '../ui/text.ts'

const stored = storedSetting.pick({ key: true, value: true, version: true, locked: true, problem: true }).loose()
export type CurrentSetting = z.infer<typeof stored>

/**
 * The stored value of a key; null when it was not set. Throws CommandFailed 'notFound' for an
 * unknown key.
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

/** All settings that were set. */
export function listStoredSettings(api: ApiClient): Promise<CurrentSetting[]> {
  return listAll(api, '/api/v1/config', stored)
}

export function toSettingPath(key: string): string {
  return `/api/v1/config/${encodeURIComponent(key)}`
}

// A source may be one that this version does not know.
const effective = settingInForce
  .extend({ source: z.string(), problem: settingInForce.shape.problem.optional() })
  .loose()
type EffectiveSetting = z.infer<typeof effective>

/**
 * Every setting with its value in force; with a type, as an investigation of that type reads it.
 */
export async function listEffectiveSettings(api: ApiClient, type?: string): Promise<EffectiveSetting[]> {
  const query = type ? `?${new URLSearchParams({ type })}` : ''
  return z.looseObject({ items: z.array(effective) }).parse(await api.get(`/api/v1/config/effective${query}`)).items
}

/**
 * The value in force for one key. `agent.max_turns.disk_pressure` is `agent.max_turns` for that
 * type.
 */
export async function getEffectiveSetting(api: ApiClient, key: string): Promise<EffectiveSetting | null> {
  const setting = settingOf(key)
  const name = setting?.family ? setting.key.slice(0, -2) : key
  const type = setting?.family && name.startsWith('agent.') ? key.slice(name.length + 1) : undefined
  if (setting?.family && !type) return { name: key, key, value: setting.fallback, source: 'default' }
  return (await listEffectiveSettings(api, type)).find((each) => each.name === name) ?? null
}

/** Where a value comes from, in words. */
export function describeSource({ key, source }: EffectiveSetting): string {
  return source === 'environment' ? `environment variable ${key}` : source
}

export function formatValue(value: unknown): string {
  if (value === null || value === undefined) return '(not set)'
  return typeof value === 'string' ? value : inertJsonText(value)
}
