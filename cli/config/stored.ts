import { z } from 'zod'
import { settingOf } from '../../domain/setting.ts'
import { type ApiClient, listAll } from '../core.ts'
import { CommandFailed } from '../exit-code.ts'
import { ApiProblem } from '../problem.ts'

const stored = z.looseObject({
  key: z.string(),
  value: z.string().nullable(),
  version: z.number().int(),
  locked: z.boolean(),
  problem: z.string().nullable(),
})
export type StoredSetting = z.infer<typeof stored>

/** What the database holds under a key; null when nothing was set. A key that cannot exist is not found. */
export async function getStoredSetting(api: ApiClient, key: string): Promise<StoredSetting | null> {
  if (!settingOf(key)) {
    throw new CommandFailed('notFound', `There is no setting ${key}; "nightshift config list" tells which there are.`)
  }
  try {
    return stored.parse(await api.get(settingPath(key)))
  } catch (error) {
    if (error instanceof ApiProblem && error.problem.status === 404) return null
    throw error
  }
}

/** Everything that was set. */
export function listStoredSettings(api: ApiClient): Promise<StoredSetting[]> {
  return listAll(api, '/api/v1/config', stored)
}

export function settingPath(key: string): string {
  return `/api/v1/config/${encodeURIComponent(key)}`
}
