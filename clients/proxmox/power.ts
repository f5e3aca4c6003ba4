import { PlatformError } from '../platform.ts'
import type { ProxmoxApi } from './api.ts'
import type { Guest } from './cluster.ts'
import { pathOf, readStatus } from './facts.ts'
import { done, look, no, type Operation, stateFault, tasksFor } from './operation.ts'

/** A guest that does not shut down within this is stopped hard; of a restart it is a failure. */
const shutdownSeconds = 60

/**
 * Reads what a stop or a restart rests on, and says no where Proxmox would. A stop is a shutdown that ends hard: one task. Of an
 * HA-managed guest it becomes an order to the HA manager, which keeps the guest stopped; a restart is the guest's own.
 */
export async function planPower(
  api: ProxmoxApi,
  vmId: string,
  action: 'stop' | 'restart',
  host: string,
): Promise<Operation> {
  const { cluster, guest, why } = await look(api, vmId)
  if (!guest) return no(why)
  if (guest.node !== host) return no(`${vmId} is on ${guest.node}, not on ${host}`)
  if (!cluster.nodes.get(host)?.isOnline) return no(`${host} is offline`)
  if (guest.status === 'stopped') {
    return action === 'stop' ? done(`${vmId} is stopped already`) : no(`${vmId} does not run: it can be started`)
  }
  const { tasksBefore, busy } = await tasksFor(api, guest)
  const hindrance = stateFault(guest, vmId) ?? busy
  if (hindrance) return no(`${vmId} cannot be ${action === 'stop' ? 'stopped' : 'restarted'}: ${hindrance}`)
  const entry = { action, vmId, node: host, target: host, tasksBefore }
  return action === 'stop'
    ? {
        entry,
        send: { path: [...pathOf(guest), 'status', 'shutdown'], form: { timeout: shutdownSeconds, forceStop: 1 } },
      }
    : { entry, send: { path: [...pathOf(guest), 'status', 'reboot'], form: { timeout: shutdownSeconds } } }
}

/** Is the guest as a stop or a restart was to leave it? Asked of its node: statistics are some seconds old. */
export async function isAsWanted(
  api: ProxmoxApi,
  action: 'stop' | 'restart',
  guest: Guest,
  ageSeconds: number,
): Promise<boolean> {
  // Its node is offline: nothing is known of what it runs.
  if (guest.status === 'unknown') return false
  const now = await readStatus(api, guest)
  if (!now) throw new PlatformError('what became of a write', 503, `it cannot be told: ${guest.node} does not answer`)
  if (action === 'stop') return now.status === 'stopped' && (guest.ha === null || guest.ha.wanted !== 'started')
  // A run that is older than the order is the run of before.
  return now.status === 'running' && now.uptime !== undefined && now.uptime < ageSeconds
}
