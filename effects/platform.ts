import { createPlatformClient, type PlatformClient } from '../clients/platform.ts'
import { createProxmoxClient } from '../clients/proxmox/client.ts'
import { type Config, proxmoxSettings } from '../config/settings.ts'
import type { Db } from '../db/connect.ts'
import {
  beginPlatformEffect,
  endPlatformEffect,
  notePlatformTask,
  platformEffectByKey,
} from '../db/writes/platform-effects.ts'
import { readChanged } from '../domain/changed.ts'
import type { EffectAnswer } from '../domain/platform.ts'
import { type EffectDeps, EffectRefused, type Ending } from './effect.ts'

/** The configured platform: a server of our protocol, a Proxmox VE cluster, or null. */
export function choosePlatform(config: Config, db: Db): PlatformClient | null {
  const cluster = proxmoxSettings(config)
  if (cluster) return createProxmoxClient({ ...cluster, journal: platformJournal(db) })
  return config.PLATFORM_URL
    ? createPlatformClient({ baseUrl: config.PLATFORM_URL, token: config.PLATFORM_TOKEN })
    : null
}

/** The journal of writes that Proxmox VE does not keep: it outlives this process. */
export function platformJournal(db: Db): Parameters<typeof createProxmoxClient>[0]['journal'] {
  return {
    get: (key) => platformEffectByKey(db, key),
    begin: (entry) => beginPlatformEffect(db, entry),
    noteTask: (key, task) => notePlatformTask(db, key, task),
    end: (key, ending) => endPlatformEffect(db, key, ending),
  }
}

/** The platform; refused where this API was started without one, which no retry changes. */
export function requirePlatform(deps: Pick<EffectDeps, 'platform'>): PlatformClient {
  if (deps.platform) return deps.platform
  throw new EffectRefused(
    'invalid',
    'NO_PLATFORM',
    'No platform is configured (PLATFORM_URL or PROXMOX_URL): nothing can be written to it.',
  )
}

/**
 * Null while it runs. The platform's changes are kept with its result; one older than the question
 * says nothing.
 */
export function toEnding(answer: EffectAnswer): Ending | null {
  const { status, detail, result } = answer
  return status === 'running' ? null : { status, detail, result: { ...result, changed: readChanged(answer) } }
}
