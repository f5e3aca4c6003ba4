import { z } from 'zod'
import type { PlatformEffect, PlatformEffectEnding } from '../../domain/platform.ts'
import { PlatformError } from '../platform.ts'
import { type ApiPath, type Form, type ProxmoxApi, tasksOf } from './api.ts'
import { type Cluster, type Guest, readCluster } from './cluster.ts'
import { findBlocker, getReachableNodes, numberOf, pathOf, readConfig, readStatus } from './facts.ts'

/**
 * An operation to send, or an ending that is known without sending: the operation is already done,
 * or Proxmox would refuse it.
 */
export type PlatformOperation =
  | { ending: PlatformEffectEnding }
  | { entry: Omit<PlatformEffect, 'key'>; send: { path: ApiPath; form: Form } | null }

const done = (detail: string): PlatformOperation => ({ ending: { status: 'done', detail } })
const no = (detail: string): PlatformOperation => ({ ending: { status: 'failed', detail } })

const blocker = z.looseObject({
  unavailable_storages: z.array(z.string()).optional(),
  'unavailable-resources': z.array(z.string()).optional(),
  'blocking-ha-resources': z.array(z.looseObject({ sid: z.string() })).optional(),
})
const precondition = z.looseObject({
  /** The allowed nodes, which older releases report only for stopped guests. */
  allowed_nodes: z.array(z.string()).optional(),
  'allowed-nodes': z.array(z.string()).optional(),
  local_disks: z.array(z.looseObject({ volid: z.string() })).default([]),
  local_resources: z.array(z.string()).default([]),
  not_allowed_nodes: z.record(z.string(), blocker).default({}),
  'not-allowed-nodes': z.record(z.string(), blocker).default({}),
})

/**
 * Plans a migration: checks its conditions, and refuses it if Proxmox would refuse it or do
 * something else.
 */
export async function planMigration(
  api: ProxmoxApi,
  vmId: string,
  from: string,
  to: string,
): Promise<PlatformOperation> {
  const { cluster, guest, why } = await look(api, vmId)
  if (!guest) return no(why)
  if (guest.node === to) {
    return guest.status === 'running'
      ? done(`${vmId} runs on ${to} already`)
      : no(`${vmId} is on ${to} and does not run`)
  }
  if (guest.node !== from) return no(`${vmId} is on ${guest.node}, not on ${from}`)
  const fault = placeFault(cluster, to) ?? (cluster.nodes.get(from)?.isOnline ? null : `${from} is offline`)
  if (fault) return no(fault)
  if (guest.status === 'stopped') return no(`${vmId} does not run, and only a running guest can be migrated`)
  // Waits if a move is ordered: guests that belong together move by an order for one of them.
  if (guest.ha?.destination === to) {
    return { entry: { action: 'await', vmId, node: from, target: to, tasksBefore: [] }, send: null }
  }
  const { tasksBefore, busy } = await tasksFor(api, guest)
  const hindrance =
    stateFault(guest, vmId) ??
    busy ??
    (await constraintFault(api, cluster, guest, to)) ??
    (await askedFault(api, guest, to))
  if (hindrance) return no(`${vmId} cannot be migrated to ${to}: ${hindrance}`)
  const form: Form = { target: to, ...(guest.kind === 'qemu' ? { online: 1 } : { restart: 1 }) }
  return {
    entry: { action: 'migrate', vmId, node: from, target: to, tasksBefore },
    send: { path: [...pathOf(guest), 'migrate'], form },
  }
}

/**
 * Plans a start like a migration. Only the HA manager moves a guest away from a dead node. The plan
 * for such a start sends nothing, and waits for the manager.
 */
export async function planStart(api: ProxmoxApi, vmId: string, host: string): Promise<PlatformOperation> {
  const { cluster, guest, why } = await look(api, vmId)
  if (!guest) return no(why)
  const fault = placeFault(cluster, host)
  if (fault) return no(fault)
  const entry = { vmId, node: guest.node, target: host }
  if (guest.node === host) {
    if (guest.status === 'running') return done(`${vmId} runs on ${host} already`)
    const { tasksBefore, busy } = await tasksFor(api, guest)
    const hindrance = stateFault(guest, vmId) ?? busy
    if (hindrance) return no(`${vmId} cannot be started: ${hindrance}`)
    return {
      entry: { ...entry, action: 'start', tasksBefore },
      send: { path: [...pathOf(guest), 'status', 'start'], form: {} },
    }
  }
  if (cluster.nodes.get(guest.node)?.isOnline) {
    return no(
      `${vmId} is defined on ${guest.node}, which is online: start it on ${guest.node}, then migrate it to ${host}`,
    )
  }
  if (guest.ha === null) {
    const folder = guest.kind === 'qemu' ? 'qemu-server' : 'lxc'
    const file = (node: string) => `/etc/pve/nodes/${node}/${folder}/${guest.vmid}.conf`
    return no(
      `${vmId} is defined on ${guest.node}, which is offline, and not HA-managed. No API call moves the guest. ` +
        `A person can move the guest as root, once ${guest.node} is certainly off and its disks are reachable: mv ${file(guest.node)} ${file(host)}`,
    )
  }
  if (guest.ha.wanted !== 'started') return no(`the HA manager is ordered to keep ${vmId} ${guest.ha.wanted}`)
  if (guest.ha.state === 'error') return no(`the HA manager gave up ${vmId}: ${errorRemedy(guest)}`)
  return { entry: { ...entry, action: 'await', tasksBefore: [] }, send: null }
}

export function errorRemedy({ ha }: Guest): string {
  return `the guest is in the state error. Repair the cause, then: ha-manager set ${ha?.sid} --state disabled, and started again`
}

async function look(
  api: ProxmoxApi,
  vmId: string,
): Promise<{ cluster: Cluster; guest: Guest; why: '' } | { cluster: Cluster; guest: null; why: string }> {
  const cluster = await readCluster(api)
  const number = numberOf(vmId)
  const guest = number === null ? undefined : cluster.guests.get(number)
  const nothing = (why: string) => ({ cluster, guest: null, why })
  if (!cluster.isQuorate)
    return nothing('the cluster has no quorum, so nothing can be changed, and nothing was changed')
  if (!guest) return nothing(`${vmId} is not a guest of this cluster that the token may see`)
  if (guest.isTemplate) return nothing(`${vmId} is a template`)
  const isOnline = cluster.nodes.get(guest.node)?.isOnline === true
  const status = isOnline ? ((await readStatus(api, guest))?.status ?? 'unknown') : 'unknown'
  return { cluster, guest: { ...guest, status }, why: '' }
}

function placeFault(cluster: Cluster, name: string): string | null {
  const node = cluster.nodes.get(name)
  if (!node) return `${name} is not a node of this cluster`
  if (!node.isOnline) return `${name} is offline`
  return node.isInMaintenance ? `${name} is in maintenance` : null
}

function stateFault(guest: Guest, vmId: string): string | null {
  if (guest.lock !== null) return `the guest is locked (${guest.lock})`
  const { ha } = guest
  if (ha?.state === 'error') return `the HA manager gave up ${vmId}: ${errorRemedy(guest)}`
  return ha?.destination ? `the HA manager is moving the guest to ${ha.destination} already` : null
}

async function tasksFor(api: ProxmoxApi, guest: Guest): Promise<{ tasksBefore: string[]; busy: string | null }> {
  const tasks = await tasksOf(api, guest.node, guest.vmid)
  const running = tasks.find((task) => task.end === null)
  return {
    tasksBefore: tasks.map((task) => task.upid),
    busy: running ? `a task of ${running.user} is working on the guest (${running.type})` : null,
  }
}

/**
 * Returns why the guest's configuration prevents the move. Reads the configuration again, because
 * the known one may be a minute old.
 */
async function constraintFault(api: ProxmoxApi, cluster: Cluster, guest: Guest, to: string): Promise<string | null> {
  const constraints = await readConfig(api, guest)
  if (!constraints) return `${guest.node} does not show its configuration`
  const reason = findBlocker(constraints, cluster.storages)
  if (reason) return reason
  const reach = getReachableNodes(constraints, cluster.storages, guest.node, cluster.nodes.keys())
  return reach === null || reach.includes(to)
    ? null
    : `${to} does not have all of its storages (${constraints.storages.join(', ')})`
}

/** Returns why Proxmox's own check refuses the move. Null if the check allows the move. */
async function askedFault(api: ProxmoxApi, guest: Guest, to: string): Promise<string | null> {
  let answer: z.infer<typeof precondition>
  try {
    answer = await api.get([...pathOf(guest), 'migrate'], precondition, { query: { target: to } })
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error
    // Accepts that older releases cannot check containers.
    if (error.status === 501) return null
    if (error.status === 500) return error.detail
    throw error
  }
  const allowed = answer.allowed_nodes ?? answer['allowed-nodes']
  const blocked = answer.not_allowed_nodes[to] ?? answer['not-allowed-nodes'][to]
  const parts = [
    named(
      'local disks',
      answer.local_disks.map((disk) => disk.volid),
    ),
    named('local resources', answer.local_resources),
    named('storages missing there', blocked?.unavailable_storages),
    named('resources missing there', blocked?.['unavailable-resources']),
    named(
      'HA resources in the way',
      blocked?.['blocking-ha-resources']?.map(({ sid }) => sid),
    ),
  ].filter((part) => part !== null)
  if (parts.length > 0) return parts.join('; ')
  return allowed && !allowed.includes(to) ? 'Proxmox VE does not allow this node' : null
}

function named(what: string, names: string[] = []): string | null {
  return names.length > 0 ? `${what}: ${names.slice(0, 10).join(', ')}` : null
}

/**
 * Seconds after which a stop kills a guest that does not shut down. A restart fails after this
 * time.
 */
const shutdownSeconds = 60

/**
 * Plans a stop or restart, and refuses it if Proxmox would refuse it. A stop is a shutdown that
 * ends hard, in one task. For an HA guest it becomes an order to the HA manager, which keeps the
 * guest stopped. A restart affects only the guest.
 */
export async function planPower(
  api: ProxmoxApi,
  vmId: string,
  action: 'stop' | 'restart',
  host: string,
): Promise<PlatformOperation> {
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

/**
 * Whether the guest's node itself reports the result of a stop or restart. Does not use the
 * statistics, because they are late.
 */
export async function isAsWanted(
  api: ProxmoxApi,
  action: 'stop' | 'restart',
  guest: Guest,
  ageSeconds: number,
): Promise<boolean> {
  // Cannot tell: the guest's node is offline, so the state of the guest is unknown.
  if (guest.status === 'unknown') return false
  const now = await readStatus(api, guest)
  if (!now)
    throw new PlatformError(
      'the query for the result of a write',
      503,
      `the result is unknown: ${guest.node} does not answer`,
    )
  if (action === 'stop') return now.status === 'stopped' && (guest.ha === null || guest.ha.wanted !== 'started')
  // Requires a run that is younger than the request, because an older run shows no restart.
  return now.status === 'running' && now.uptime !== undefined && now.uptime < ageSeconds
}
