import { z } from 'zod'
import { settingOf } from '../../domain/setting.ts'
import { type Core, listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'

const stored = z.looseObject({ key: z.string(), value: z.unknown(), version: z.number().int().nullish() })
export type StoredSetting = z.infer<typeof stored>

/** What the database holds under a key; its value is null when nothing was set. A key that cannot exist is not found. */
export async function storedSetting(api: Core, key: string): Promise<StoredSetting> {
  const all = await listAll(api, '/api/v1/config', stored)
  const found = all.find((setting) => setting.key === key)
  if (found) return found
  if (!settingOf(key))
    throw new CommandFailed('notFound', `There is no setting ${key}; "nightshift config list" tells which there are.`)
  return { key, value: null, version: null }
}
