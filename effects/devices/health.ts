import { HttpError } from '../../clients/http.ts'
import type { Trx } from '../../db/connect.ts'
import { listConnections } from '../../db/inventory/device-connections.ts'
import { type DeviceRow, lockDevice, noteHealth, usableDevices } from '../../db/inventory/devices.ts'
import { recordAudit } from '../../db/log/audit.ts'
import type { MeshHealth } from '../../domain/mesh.ts'
import { findSandboxLack } from '../../domain/status-words.ts'
import { InvalidDeviceResponseError, readHealth } from '../../mesh/client.ts'
import type { EffectDeps } from '../effect.ts'
import { describeAbsence } from './connections.ts'
import { currentManifest, type Mesh, noteKeys, requireMesh, wayTo } from './executor.ts'

/**
 * Reads a device's health and stores it. If the device does not answer, stores the reason and
 * returns null.
 */
export async function askHealth(deps: EffectDeps, device: DeviceRow): Promise<MeshHealth | null> {
  try {
    const health = await readHealth(wayTo(requireMesh(deps), device))
    const hadLack = findSandboxLack(device.health) !== null
    if (device.health === null || hadLack === (findSandboxLack(health) !== null))
      await noteHealth(deps.db, device.id, { health })
    else await deps.db.transaction().execute((trx) => noteSandbox(trx, device.id, health))
    return health
  } catch (error) {
    if (!(error instanceof HttpError) && !(error instanceof InvalidDeviceResponseError)) throw error
    await noteHealth(deps.db, device.id, { problem: error.message })
    return null
  }
}

/**
 * Records in the audit log that a device lost or regained its sandbox. Records this once, although
 * several processes see it.
 */
async function noteSandbox(trx: Trx, subject: string, health: MeshHealth): Promise<void> {
  const before = await lockDevice(trx, subject)
  await noteHealth(trx, subject, { health })
  const lack = findSandboxLack(health)
  if (!before?.health || (findSandboxLack(before.health) === null) === (lack === null)) return
  const [what, detail] =
    lack === null
      ? (['device.sandbox_back', `Reads of the device are confined again, by ${health.sandbox}`] as const)
      : (['device.sandbox_lost', `Reads of the device are not confined: ${lack}`] as const)
  await recordAudit(trx, { who: subject, what, subject, detail })
}

const healthEveryMs = 30_000

/**
 * Stores the keys. Every 30 s, reads the health of devices: of agents that listen, and of agents
 * connected to this process. Returns a function that stops the reads.
 */
export function watchMesh(deps: EffectDeps): () => void {
  const { mesh, log } = deps
  if (!mesh) return () => {}
  let hasStoredKeys = false
  let isAsking = false
  async function look(opened: Mesh) {
    if (!hasStoredKeys) await noteKeys(deps, opened)
    hasStoredKeys = true
    await lookAtDevices(deps, opened)
  }
  const tick = () => {
    if (isAsking) return
    isAsking = true
    look(mesh)
      .catch((error) => log.error({ err: error }, 'the devices could not be checked'))
      .finally(() => {
        isAsking = false
      })
  }
  tick()
  const timer = setInterval(tick, healthEveryMs)
  return () => clearInterval(timer)
}

async function lookAtDevices(deps: EffectDeps, mesh: Mesh): Promise<void> {
  const held = new Set(mesh.connections?.held())
  const connections = await listConnections(deps.db)
  for (const device of await usableDevices(deps.db)) {
    const { id, url } = device
    if (url !== null) await askHealth(deps, device)
    else if (held.has(id)) {
      // Renews a manifest past half its life. An agent that listens fetches the manifest; an agent
      // that is connected here gets it sent.
      if (isPastHalf(device)) await currentManifest(deps, mesh, device)
      await askHealth(deps, device)
    } else if (!connections.get(id)?.isConnected)
      await noteHealth(deps.db, id, { problem: describeAbsence(id, connections.get(id) ?? null) })
  }
}

function isPastHalf({ manifest }: DeviceRow): boolean {
  return manifest !== null && Date.now() > (Date.parse(manifest.issued_at) + Date.parse(manifest.expires_at)) / 2
}
