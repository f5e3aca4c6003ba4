import type { SettingDescription, SettingInForce, StoredSetting } from '../../domain/setting-row.ts'
import { type ListPage, readAgain, useAsk } from '../api.ts'

/** One setting on the page: its value in force, and all stored values. */
export type SettingView = {
  name: string
  section: string
  label: string
  unit: string | null
  description: string
  environment: string | null
  secret: boolean
  fallback: string | null
  /**
   * True if the setting has a value for every part after the dot, which is an incident type or a
   * tool.
   */
  family: boolean
  /** True if the setting has a value without such a part. */
  single: boolean
  effective: SettingInForce | null
  stored: StoredSetting[]
  /** True if the environment sets the value, so that a stored value would have no effect. */
  locked: boolean
}

/**
 * Reads everything again after a change, or after a change that was refused because another person
 * changed it first.
 */
export function invalidateSettings(): void {
  void readAgain(['config'], ['config-effective'], ['revisions'])
}

export function useSettings(type: string) {
  const config = useAsk<ListPage<StoredSetting> & { settings: SettingDescription[] }>(['config'], '/config')
  const effective = useAsk<ListPage<SettingInForce>>(
    ['config-effective', type],
    `/config/effective${type ? `?type=${encodeURIComponent(type)}` : ''}`,
  )
  const settings = config.data && effective.data ? toSettings(config.data, effective.data.items) : null
  return { settings, unknown: config.data ? listUnknown(config.data) : [], config, effective }
}

function toSettings(
  config: { items: StoredSetting[]; settings: SettingDescription[] },
  effective: SettingInForce[],
): SettingView[] {
  const byName = new Map<string, SettingView>()
  for (const known of config.settings) {
    const family = known.key.endsWith('.*')
    const name = family ? known.key.slice(0, -2) : known.key
    const before = byName.get(name)
    if (before) {
      byName.set(name, { ...before, family: before.family || family, single: before.single || !family })
      continue
    }
    const inForce = effective.find((each) => each.name === name) ?? null
    byName.set(name, {
      name,
      section: known.section,
      label: known.label,
      unit: known.unit,
      description: known.description,
      environment: known.environment,
      secret: known.secret,
      fallback: known.default,
      family,
      single: !family,
      effective: inForce,
      stored: config.items.filter(({ key }) => key === name || (family && key.startsWith(`${name}.`))),
      locked: inForce?.source === 'environment' && !name.startsWith('agent.'),
    })
  }
  for (const setting of byName.values()) {
    if (setting.family)
      setting.stored = config.items.filter(({ key }) => key === setting.name || key.startsWith(`${setting.name}.`))
  }
  return [...byName.values()]
}

/**
 * Lists values that are stored under a key that no setting has, and that have no effect, but are
 * shown.
 */
function listUnknown(config: { items: StoredSetting[]; settings: SettingDescription[] }): StoredSetting[] {
  const names = config.settings.map(({ key }) => (key.endsWith('.*') ? key.slice(0, -1) : key))
  return config.items.filter(
    ({ key }) => !names.some((name) => (name.endsWith('.') ? key.startsWith(name) : key === name)),
  )
}
