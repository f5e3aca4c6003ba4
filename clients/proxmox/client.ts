import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { EffectAnswer, PlatformEffect } from '../../domain/platform.ts'
import { HttpError } from '../http.ts'
import { type PlatformClient, PlatformError } from '../platform.ts'
import {
  createProxmoxApi,
  type Form,
  isSilence,
  type Path,
  type ProxmoxApi,
  type ProxmoxApiOptions,
  upid,
} from './api.ts'
import { readCluster } from './cluster.ts'
import { guestFacts } from './facts.ts'
import { inventoryOf, readRules } from './inventory.ts'
import { type Operation, planMigration, planPower, planStart } from './operation.ts'
import { type Journal, lostAfterSeconds, readOutcome, taskFromList } from './outcome.ts'

export type ProxmoxOptions = ProxmoxApiOptions & {
  journal: Journal
  /** Rack by node. */
  racks?: Record<string, string>
}

/**
 * A Proxmox VE cluster as a platform. Its nodes are the hosts, its virtual machines and containers the VMs; it has no shards,
 * nodes or tenants in Nightshift's sense. See docs/reference/proxmox.md for what is read, what is sent, and what cannot be done.
 */
export function createProxmoxClient(options: ProxmoxOptions): PlatformClient {
  const { journal, racks = {} } = options
  const api = createProxmoxApi(options)
  const ports: Ports = { api, journal }
  const readFacts = guestFacts(api)
  let hasPrivileges = false

  return {
    async inventory(signal) {
      if (!hasPrivileges) await requirePrivileges(api, signal)
      hasPrivileges = true
      const cluster = await readCluster(api, signal)
      if (!cluster.isQuorate) {
        throw new PlatformError('GET /cluster/status', 503, 'no quorum: which nodes are dead cannot be told from here')
      }
      const groupOf = new Map<string, string>()
      for (const { ha } of cluster.guests.values()) if (ha?.group) groupOf.set(ha.sid, ha.group)
      const rules = await readRules(api, groupOf, signal)
      return inventoryOf(cluster, rules, await readFacts(cluster, signal), racks)
    },
    async converge() {
      throw new PlatformError('converge', 422, 'Proxmox VE has no shards')
    },
    wouldConverge: async () => null,
    startVm: (vmId, host, key) => runOnce(ports, key, { vmId, target: host }, () => planStart(api, vmId, host)),
    powerVm: (vmId, action, host, key) =>
      runOnce(ports, key, { vmId, target: host, action }, () => planPower(api, vmId, action, host)),
    migrateVm: (vmId, { from, to }, key) =>
      runOnce(ports, key, { vmId, target: to }, () => planMigration(api, vmId, from, to)),
    async effect(key) {
      const row = await journal.get(key)
      return row && (await readOutcome(api, journal, row))
    },
  }
}

type Ports = { api: ProxmoxApi; journal: Journal }

/** Sends an operation once, however often its key is asked for. */
async function runOnce(
  ports: Ports,
  key: string,
  wanted: Pick<PlatformEffect, 'vmId' | 'target'> & { action?: 'stop' | 'restart' },
  plan: () => Promise<Operation>,
): Promise<EffectAnswer> {
  const { api, journal } = ports
  const earlier = await journal.get(key)
  if (earlier) {
    const isSame = wanted.action ? earlier.action === wanted.action : !['stop', 'restart'].includes(earlier.action)
    if (isSame && earlier.vmId === wanted.vmId && earlier.target === wanted.target)
      return await readOutcome(api, journal, earlier)
    throw new PlatformError('a write', 422, 'this key was used for something else')
  }
  const operation = await plan().catch((error): Operation => {
    if (!(error instanceof PlatformError) && !(error instanceof HttpError)) throw error
    return { ending: { status: 'failed', detail: `nothing was sent: ${error.message}` } }
  })
  if ('ending' in operation) return { key, ...operation.ending, result: {} }
  // From here on it may have been sent, and only what Proxmox shows tells whether it was.
  if (await journal.begin({ key, ...operation.entry })) {
    if (operation.send) await send(ports, key, operation.send)
  }
  return await waitForOutcome(ports, key)
}

async function send({ api, journal }: Ports, key: string, { path, form }: { path: Path; form: Form }): Promise<void> {
  try {
    await journal.noteTask(key, await api.post(path, form, upid))
  } catch (error) {
    // Without an answer it may have begun. A refusal comes before anything does.
    if (isSilence(error) || error instanceof HttpError) return
    if (!(error instanceof PlatformError)) throw error
    // The proxy between nodes repeats a request whose connection it lost: the refusal may be to the second one.
    const row = await journal.get(key)
    if (error.status === 500 && row && (await taskFromList(api, journal, row).catch(() => null))) return
    await journal.end(key, { status: 'failed', detail: `Proxmox VE: ${error.detail || error.message}` })
  }
}

/** Asks for the outcome again while a request whose answer was lost may still show up. */
async function waitForOutcome({ api, journal }: Ports, key: string): Promise<EffectAnswer> {
  for (;;) {
    const row = await journal.get(key)
    if (!row) throw new PlatformError('a write', 500, 'its row is gone')
    try {
      return await readOutcome(api, journal, row)
    } catch (error) {
      const isFault = error instanceof PlatformError || error instanceof HttpError
      if (!isFault || !error.retryable || row.ageSeconds > lostAfterSeconds + 10) throw error
      await sleep(1_000)
    }
  }
}

/** Proxmox lists what a token may see and keeps still about the rest: a host would look empty that is full. */
async function requirePrivileges(api: ProxmoxApi, signal: AbortSignal | undefined): Promise<void> {
  const schema = z.record(z.string(), z.record(z.string(), z.unknown()))
  const granted = (await api.get(['access', 'permissions'], schema, { query: { path: '/' }, signal }))['/'] ?? {}
  const missing = ['VM.Audit', 'Sys.Audit', 'Datastore.Audit'].filter((name) => !Number(granted[name] ?? 0))
  if (missing.length === 0) return
  throw new PlatformError(
    'GET /access/permissions',
    403,
    `the token lacks ${missing.join(', ')} on /, with propagation`,
  )
}
