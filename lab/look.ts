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

/** A node as seen from outside: from the kernel, from its files, and by asking it. */
export type NodeLook = {
  plan: NodePlan
  /** Where all that the node has lies, as an absolute path. */
  directory: string
  process: ProcessState
  /** It answers as its role must: a web node serves every tenant's page. */
  answers: boolean
  lagSeconds: number | null
  bytes: Record<string, number>
  /** CPU seconds of a process that does not belong on the node; null when there is none. */
  runawaySeconds: number | null
  /** The absolute path of the log that its service has left, if it left one. */
  appLog: string | null
  /** The absolute path of the node's routes when they are no JSON. */
  brokenRoutes: string | null
  /** The package that the node says it lacks; null when it has all, or says nothing. */
  missingPackage: string | null
  /** Since when a backup of the node runs; null when none does. */
  backupSince: string | null
  /** `maxAgeSeconds is 0, should be 60`, one per setting. */
  drift: string[]
}

/** A VM and the hosts on which a process of it lives. */
type VmLook = { plan: VmPlan; on: string[] }

export type PlatformView = { nodes: NodeLook[]; hosts: HostState[]; vms: VmLook[] }

/** Long enough for a busy machine: who is slow is not down. */
const answerMs = 2000

/** From this part of the quota on a disk counts as full. */
export const fullFraction = 0.9

/** Looks at everything, now. Nothing is remembered between two looks. */
export async function lookAt(lab: Lab): Promise<PlatformView> {
  const [nodes, hosts] = await Promise.all([
    Promise.all(lab.topology.nodes.map((plan) => lookAtNode(lab, plan))),
    Promise.all(lab.topology.hosts.map((plan) => lookAtHost(lab, plan.id).then((state) => ({ ...plan, state })))),
  ])
  const vms = lab.topology.vms.map((plan) => ({ plan, on: hostsRunning(lab, plan.id) }))
  return { nodes, hosts: hosts.map((host) => withFencing(lab, host, vms)), vms }
}

/**
 * A process gone with all it ran is a machine without power: the lab can tell. A hanging one is
 * not.
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

/** What the lab calls the process that should not be on a node. */
export function runawayOn(node: string): string {
  return `runaway-${node}`
}

/** What the lab calls the process that listens in a node's place. */
export function portHolderOf(node: string): string {
  return `squatter-${node}`
}

function runawaySeconds(lab: Lab, node: string): number | null {
  const child = lab.children.get(runawayOn(node))
  return child && processState(child.pid) !== 'gone' ? cpuSeconds(child.pid) : null
}

/** One reading of a node: its health and, unless nominal, one line that says why. */
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

/** A tenant is served as long as one web node, or its database's primary, answers. */
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

/** Reads both logs from outside: who is stopped cannot tell how far it is behind. */
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

/** By the node's own word. Only one whose release needs something is asked. */
async function missingPackage(directory: string, port: number): Promise<string | null> {
  if (!existsSync(join(directory, needsFile))) return null
  try {
    const signal = AbortSignal.timeout(answerMs)
    const response = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' }, signal })
    return healthz.parse(await response.json()).missingPackage
  } catch {
    // A silent one tells nothing.
    return null
  }
}

/** `fetch` sets no Host header of the caller's choice, and a tenant is chosen by it. */
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
