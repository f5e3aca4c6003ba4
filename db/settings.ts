import { type EffectiveSetting, effectiveSetting } from '../domain/setting.ts'
import type { Db, Trx } from './connect.ts'

/** Defaults that come from the environment, by the name of the variable. */
export type EnvironmentDefaults = Record<string, string | undefined>

export async function storedSettings(db: Db | Trx): Promise<Map<string, string>> {
  const rows = await db.selectFrom('platformConfig').select(['key', 'value']).execute()
  return new Map(rows.map((row) => [row.key, row.value]))
}

export type SettingsReader = {
  effective(name: string, type?: string | null): EffectiveSetting
  value<T>(name: string, type?: string | null): T
}

/** One consistent look at the settings: read at the start of a cycle, then asked as often as needed. */
export async function readSettings(db: Db | Trx, environment: EnvironmentDefaults = {}): Promise<SettingsReader> {
  const stored = await storedSettings(db)
  const effective = (name: string, type: string | null = null) => effectiveSetting(name, type, stored, environment)
  return { effective, value: <T>(name: string, type: string | null = null) => effective(name, type).value as T }
}
