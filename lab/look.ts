import { existsSync, readFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { z } from 'zod'
import type { Health, HostState, Inventory, NodeState } from '../domain/platform.ts'
import { appLogOf } from './app-log.ts'
import { cpuSeconds, type ProcessState, processState } from './children.ts'
import { backupSince, bytesByDirectory } from './devices.ts'
import { logFile, newestRecordAt } from './node/program.ts'
import { needsFile } from './packages.ts'
import { desiredConfig, type Lab, nodeDirectory } from './state.ts'
import { brokenRoutes, type NodePlan, routesFile, type TenantPlan, type VmPlan } from './topology.ts'
import { hostsRunning, linkId, runOf } from './vm.ts'

/** The state of a node as seen from outside: by the kernel, the node's files, and its responses. */
export type NodeLook = {
  plan: NodePlan
  /** The absolute path of the node's directory. */
  directory: string
  process: ProcessState
  /**
   * Whether the node responds as its role requires. A web node, for example, must serve every
   * tenant's page.
   */
  answers: boolean
  lagSeconds: number | null
  bytes: Record<string, number>
  /** CPU seconds of a process that does not belong on the node. Null if no such process runs. */
  runawaySeconds: number | null
  /** The absolute path of the log of the node's service, if any. */
  appLog: string | null
  /** The absolute path of the node's routes file if the file is not JSON; otherwise null. */
  brokenRoutes: string | null
  /**
   * The missing package that the node reports. Null if no package is missing, or the node reports
   * nothing.
   */
  missingPackage: string | null
  /** The start of the node's running backup; null if no backup runs. */
  backupSince: string | null
  /** Settings that differ from the desired ones, such as `maxAgeSeconds is 0, should be 60`. */
  drift: string[]
}

/** A VM, and the hosts on which a process of this VM runs. */
type VmLook = { plan: VmPlan; on: string[] }

export type PlatformView = { nodes: NodeLook[]; hosts: HostState[]; vms: VmLook[] }

/**
 * Milliseconds within which a node has to respond: enough for a busy machine, because a slow node
 * is not down.
 */
const answerMs = 2000

/** The fraction of the quota from which a disk counts as full. */
export const fullFraction = 0.9

/** Reads the present state of the whole platform. Keeps nothing for the next call. */
export async function lookAt(lab: Lab): Promise<PlatformView> {
  const [nodes, hosts] = await Promise.all([
    Promise.all(lab.topology.nodes.map((plan) => lookAtNode(lab, plan))),
    Promise.all(lab.topology.hosts.map((plan) => lookAtHost(lab, plan.id).then((state) => ({ ...plan, state })))),
  ])
  const vms = lab.topology.vms.map((plan) => ({ plan, on: hostsRunning(lab, plan.id) }))
  return { nodes, hosts: hosts.map((host) => withFencing(lab, host, vms)), vms }
}

/**
 * Marks a dead host as powered off if the lab can confirm it. A host is off if its process and all
 * its VMs are gone. A host whose process hangs still has power.
 */
function withFencing(lab: Lab, host: HostState, vms: VmLook[]): HostState {
  const child = lab.children.get(host.id)
  const isGone = !child || processState(child.pid) === 'gone'
  const isOff = host.state === 'dead' && isGone && vms.every(({ on }) => !on.includes(host.id))
  return isOff && lab.confirmsPower ? { ...host, fenced: { by: 'its power switch', at: null } } : host
}

export async function lookAtNode(lab: Lab, plan: NodePlan): Promise<NodeLook> {
  const child = lab.children.get(plan.id)
  const state = child ? processState(child.pid) : 'gone'
  const directory = nodeDirectory(lab, plan.id)
  return {
    plan,
    directory,
    process: state,
    answers: state === 'running' && (await answers(lab, plan, child!.port)),
    lagSeconds: plan.role === 'replica' ? lagSeconds(lab, plan) : null,
    bytes: bytesByDirectory(directory),
    runawaySeconds: runawaySeconds(lab, plan.id),
    appLog: appLogOf(lab, plan),
    brokenRoutes: brokenRoutes(lab, plan),
    missingPackage: state === 'running' ? await missingPackage(directory, child!.port) : null,
    backupSince: backupSince(lab, plan.id),
    drift: drift(lab, plan, directory),
  }
}

/** Returns the id of the lab's process that does not belong on a node. */
export function runawayOn(node: string): string {
  return `runaway-${node}`
}

/** Returns the id of the lab's process that listens on a node's port. */
export function portHolderOf(node: string): string {
  return `squatter-${node}`
}

function runawaySeconds(lab: Lab, node: string): number | null {
  const child = lab.children.get(runawayOn(node))
  return child && processState(child.pid) !== 'gone' ? cpuSeconds(child.pid) : null
}

/** Returns the health of a node, and one line with the reason unless the node is nominal. */
export function healthOf(
  { plan, process, answers, lagSeconds, bytes, brokenRoutes, missingPackage, drift }: NodeLook,
  lagLimitSeconds: number,
): { status: Health; reason: string | null } {
  const reasons: string[] = []
  let status: Health = 'nominal'
  const note = (worse: Health, reason: string) => {
    reasons.push(reason)
    status = worstOf([status, worse])
  }
  const lag = lagSeconds ?? 0
  if (lag >= 2) note(lag > lagLimitSeconds ? 'critical' : 'degraded', `replica is ${Math.round(lag)} s behind`)
  if (process === 'gone') note('critical', 'process is not running')
  else if (process === 'stopped') note('critical', 'process is stopped')
  else if (!answers) note('critical', 'process does not answer')
  const used = usedBytes(bytes) / plan.diskQuotaBytes
  if (used >= fullFraction) note(used > 1 ? 'critical' : 'degraded', `disk ${Math.round(used * 100)} % of quota`)
  if (brokenRoutes !== null) note('critical', `${routesFile} is no JSON`)
  if (missingPackage !== null) note('degraded', `package ${missingPackage} is not installed`)
  if (drift.length > 0) note('degraded', `configuration drifted: ${drift.join(', ')}`)
  return { status, reason: reasons.length > 0 ? reasons.join('; ') : null }
}

export function usedBytes(bytes: Record<string, number>): number {
  return Object.values(bytes).reduce((sum, each) => sum + each, 0)
}

export function inventoryOf(lab: Lab, look: PlatformView): Inventory {
  const nodes = look.nodes.map((node): NodeState => {
    const { id, shard, region, role, diskQuotaBytes } = node.plan
    return {
      id,
      shard,
      region,
      role,
      hostname: `${id}.${region}.lab.internal`,
      ip: '127.0.0.1',
      ...healthOf(node, lab.lagSeconds),
      replicationLagSeconds: node.lagSeconds,
      diskUsedBytes: usedBytes(node.bytes),
      diskQuotaBytes,
      diskByDirectory: node.bytes,
    }
  })
  const healthIn = (shard: string) => nodes.filter((node) => node.shard === shard).map(({ status }) => status)
  return {
    regions: lab.topology.regions.map((id) => ({ id })),
    shards: lab.topology.shards.map(({ id, region, role, config }) => ({
      id,
      region,
      role,
      config,
      status: worstOf(healthIn(id)),
    })),
    nodes,
    tenants: lab.topology.tenants.map((tenant) => ({ ...tenant, status: tenantHealth(look, tenant, healthIn) })),
    hosts: look.hosts,
    vms: look.vms.map(({ plan, on }) => ({
      ...plan,
      host: lab.placement[plan.id]!,
      running: on.length > 0,
      ...runOf(lab, plan.id),
      pinnedTo: [],
      forbiddenHosts: [],
      affinityGroup: null,
    })),
    links: lab.topology.links.map((link) => ({ ...link, up: !lab.linksDown.includes(linkId(link.a, link.b)) })),
  }
}

/**
 * Returns a tenant's health. A tenant is served as long as a web node or the primary of its shard
 * responds.
 */
function tenantHealth(look: PlatformView, tenant: TenantPlan, healthIn: (shard: string) => Health[]): Health {
  const served = look.nodes.some(
    ({ plan, answers }) => plan.shard === tenant.shard && plan.role !== 'replica' && answers,
  )
  if (!served) return 'critical'
  return worstOf(healthIn(tenant.shard)) === 'nominal' ? 'nominal' : 'degraded'
}

function worstOf(all: Health[]): Health {
  return (['critical', 'degraded', 'unknown'] as const).find((each) => all.includes(each)) ?? 'nominal'
}

async function lookAtHost(lab: Lab, id: string): Promise<HostState['state']> {
  const child = lab.children.get(id)
  if (!child || processState(child.pid) !== 'running') return 'dead'
  if (!(await gets(child.port, '/vms'))) return 'dead'
  return lab.draining.includes(id) ? 'draining' : 'live'
}

async function answers(lab: Lab, plan: NodePlan, port: number): Promise<boolean> {
  if (plan.role !== 'web') return gets(port, '/status')
  const tenants = lab.topology.shards.find(({ id }) => id === plan.shard)!.tenants
  const pages = await Promise.all(tenants.map((tenant) => gets(port, '/', tenant)))
  return pages.every(Boolean)
}

/**
 * Computes the lag from the primary's and the replica's logs, because a stopped replica cannot
 * report its lag.
 */
function lagSeconds(lab: Lab, replica: NodePlan): number | null {
  const primary = lab.topology.nodes.find(({ shard, role }) => shard === replica.shard && role === 'primary')!
  const newest = newestRecordAt(join(nodeDirectory(lab, primary.id), logFile))
  const own = newestRecordAt(join(nodeDirectory(lab, replica.id), logFile))
  if (newest === null) return null
  return own === null ? null : Math.max(0, newest - own) / 1000
}

function drift(lab: Lab, plan: NodePlan, directory: string): string[] {
  const desired = JSON.parse(desiredConfig(lab, plan)) as Record<string, unknown>
  let actual: Record<string, unknown>
  try {
    actual = JSON.parse(readFileSync(join(directory, 'etc', 'config.json'), 'utf8')) as Record<string, unknown>
  } catch {
    return ['etc/config.json cannot be read']
  }
  return [...new Set([...Object.keys(desired), ...Object.keys(actual)])]
    .filter((key) => desired[key] !== actual[key])
    .map((key) => `${key} is ${actual[key] ?? 'missing'}, should be ${desired[key] ?? 'absent'}`)
}

const healthz = z.object({ missingPackage: z.string().nullable() })

/** Reads from the node which package is missing, but only if the node's release needs a package. */
async function missingPackage(directory: string, port: number): Promise<string | null> {
  if (!existsSync(join(directory, needsFile))) return null
  try {
    const signal = AbortSignal.timeout(answerMs)
    const response = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' }, signal })
    return healthz.parse(await response.json()).missingPackage
  } catch {
    // Returns null, because a node that does not respond reports nothing.
    return null
  }
}

/**
 * Returns whether a path responds with 200. Does not use `fetch`, because `fetch` cannot set the
 * Host header, which selects a tenant.
 */
function gets(port: number, path: string, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(
      { host: '127.0.0.1', port, path, agent: false, headers: { host }, timeout: answerMs },
      (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode === 200))
        response.on('error', () => resolve(false))
      },
    )
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', () => resolve(false))
  })
}
