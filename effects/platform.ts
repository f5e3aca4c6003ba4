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

/**
 * Returns the configured platform: a server of Nightshift's own protocol, a Proxmox VE cluster, or
 * null.
 */
export function choosePlatform(config: Config, db: Db): PlatformClient | null {
  const cluster = proxmoxSettings(config)
  if (cluster) return createProxmoxClient({ ...cluster, journal: platformJournal(db) })
  return config.PLATFORM_URL
    ? createPlatformClient({ baseUrl: config.PLATFORM_URL, token: config.PLATFORM_TOKEN })
    : null
}

/**
 * Returns the journal of writes, which Proxmox VE does not keep. The journal must outlive this
 * process.
 */
export function platformJournal(db: Db): Parameters<typeof createProxmoxClient>[0]['journal'] {
  return {
    get: (key) => platformEffectByKey(db, key),
    begin: (entry) => beginPlatformEffect(db, entry),
    noteTask: (key, task) => notePlatformTask(db, key, task),
    end: (key, ending) => endPlatformEffect(db, key, ending),
  }
}

/** Returns the platform. Refuses if this API was started without one: a retry cannot help. */
export function requirePlatform(deps: Pick<EffectDeps, 'platform'>): PlatformClient {
  if (deps.platform) return deps.platform
  throw new EffectRefused(
    'invalid',
    'NO_PLATFORM',
    'No platform is configured (PLATFORM_URL or PROXMOX_URL), so no write to a platform is possible.',
  )
}

/**
 * Returns the ending of a write; null while the write runs. The changes that the platform names are
 * stored with the ending, except changes from before the request.
 */
export function toEnding(answer: EffectAnswer): Ending | null {
  const { status, detail, result } = answer
  return status === 'running' ? null : { status, detail, result: { ...result, changed: readChanged(answer) } }
}
