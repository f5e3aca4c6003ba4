import { createPlatformClient, type PlatformClient } from '../clients/platform.ts'
import { createProxmoxClient } from '../clients/proxmox/client.ts'
import { type Config, proxmoxSettings } from '../config.ts'
import type { Db } from '../db/connect.ts'
import {
  beginPlatformEffect,
  endPlatformEffect,
  notePlatformTask,
  platformEffectByKey,
} from '../db/platform-effects.ts'

/** Whatever runs the hosts, as it is configured: something that speaks our protocol, a Proxmox VE cluster, or nothing. */
export function choosePlatform(config: Config, db: Db): PlatformClient | null {
  const cluster = proxmoxSettings(config)
  if (cluster) return createProxmoxClient({ ...cluster, journal: platformJournal(db) })
  return config.PLATFORM_URL
    ? createPlatformClient({ baseUrl: config.PLATFORM_URL, token: config.PLATFORM_TOKEN })
    : null
}

/** The journal that Proxmox VE does not keep: it outlives this process. */
export function platformJournal(db: Db): Parameters<typeof createProxmoxClient>[0]['journal'] {
  return {
    get: (key) => platformEffectByKey(db, key),
    begin: (entry) => beginPlatformEffect(db, entry),
    noteTask: (key, task) => notePlatformTask(db, key, task),
    end: (key, ending) => endPlatformEffect(db, key, ending),
  }
}
