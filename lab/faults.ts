import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { appLogFile, fillTraceLog, lifetimeFile, limitLifetime, traceLog, writeOrders } from './app-log.ts'
import { breakDatabase } from './databases/break.ts'
import { type DatabaseFault, isDatabaseFault } from './databases/faults.ts'
import { beginningsBelow, bytesByDirectory, filesBelow, sha256Of, startBackups } from './devices.ts'
import { breakCluster } from './kubernetes/break.ts'
import { type ClusterFault, isClusterFault } from './kubernetes/faults.ts'
import { startNode } from './lab.ts'
import { portHolderOf, runawayOn, usedBytes } from './look.ts'
import { breakMetric } from './metric-faults.ts'
import { isMetricFault, type MetricFault } from './monitoring-rules.ts'
import { missingPrograms, needPackage, needsFile, packagePrograms } from './packages.ts'
import {
  configFile,
  type Fault,
  type FaultName,
  hostAt,
  type Lab,
  nodeAt,
  nodeDirectory,
  runningPid,
  saveState,
  storageDirectory,
  WrongTarget,
  writeForNode,
} from './state.ts'
import { brokenRoutes, deployBroken, type HostPlan, hasSite, type NodePlan, type VmPlan } from './topology.ts'
import { counterOf, linkId } from './vm.ts'

/** The fill level to which a fault fills a disk, relative to the disk's quota. */
const overfull = 1.3
const fileBytes = 512 * 1024

/**
 * Breaks a target for real. The target is a node, a shard (the fault breaks a suitable node of the
 * shard), a host, a rack, or a link `a~b`.
 */
export function breakIt(lab: Lab, name: FaultName, target: string): Promise<Fault> {
  const work = breakNow(lab, name, target)
  lab.breaking = work.catch(() => undefined)
  return work
}

async function breakNow(lab: Lab, name: FaultName, target: string): Promise<Fault> {
  const placement = { ...lab.placement }
  const begun = new Date()
  const {
    on,
    files = [],
    hosts = [],
    readOnly = [],
    kept = {},
    pids = {},
    database = null,
    cluster = null,
  } = await breakByKind(lab, name, target)
  const counters = Object.fromEntries(vmsOn(lab, hosts).map(({ id }) => [id, counterOf(lab, id)]))
  const entry: Fault = {
    fault: name,
    target,
    on,
    files,
    hosts,
    counters,
    readOnly,
    placement,
    kept,
    pids,
    // Dates a cluster fault from its beginning, because an alert about its first part may come
    // before the whole fault shows.
    at: (isClusterFault(name) ? begun : new Date()).toISOString(),
    tenantData: tenantData(lab),
    database,
    cluster,
  }
  lab.faults.push(entry)
  saveState(lab)
  return entry
}

/** Returns the sha256 of every file that belongs to a tenant, by its path in the lab. */
export function tenantData(lab: Lab): Record<string, string> {
  const files = lab.topology.nodes.flatMap(({ id }) => filesBelow(join(nodeDirectory(lab, id), 'tenants')))
  return Object.fromEntries(files.map((file) => [relative(lab.dir, file), sha256Of(file)]))
}

type Broken = { on: string } & Partial<
  Pick<Fault, 'files' | 'hosts' | 'readOnly' | 'kept' | 'pids' | 'database' | 'cluster'>
>

async function breakByKind(lab: Lab, name: FaultName, target: string): Promise<Broken> {
  if (isDatabaseFault(name)) return await breakDatabase(lab, name, target)
  if (isClusterFault(name)) return await breakCluster(lab, name, target)
  if (isMetricFault(name)) return await breakMetric(lab, name, target)
  return await breakers[name](lab, target)
}

const breakers: Record<
  Exclude<FaultName, MetricFault | DatabaseFault | ClusterFault>,
  (lab: Lab, target: string) => Promise<Broken> | Broken
> = {
  replication_lag(lab, target) {
    const { id } = nodeAt(lab, target, 'replica')
    process.kill(runningPid(lab, id), 'SIGSTOP')
    return { on: id }
  },
  disk_pressure(lab, target) {
    const node = nodeAt(lab, target, 'web')
    return { on: node.id, files: fill(lab, node, 'tmp', 'render-cache') }
  },
  disk_pressure_tenant(lab, target) {
    const node = nodeAt(lab, target, 'web')
    const tenant = lab.topology.tenants.find(({ shard }) => shard === node.shard)!
    return { on: node.id, files: fill(lab, node, join('tenants', tenant.id), 'upload') }
  },
  async service_down(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    runningPid(lab, id)
    await lab.children.kill(id)
    return { on: id }
  },
  async host_down(lab, target) {
    const { id } = hostAt(lab, target)
    await killHosts(lab, [id])
    return { on: id, hosts: [id] }
  },
  async rack_down(lab, target) {
    const hosts = lab.topology.hosts.filter(({ rack }) => rack === target).map(({ id }) => id)
    if (hosts.length === 0) throw new WrongTarget(`${target} is not a rack; a rack is written like osl-r1`)
    await killHosts(lab, hosts)
    return { on: target, hosts }
  },
  async no_room(lab, target) {
    const host = hostAt(lab, target)
    const others = lab.topology.hosts.filter(({ id, region }) => id !== target && region === host.region)
    const fitting = vmsOn(lab, [target]).filter((vm) => others.some((other) => isLargeEnough(other, vm)))
    if (fitting.length > 0)
      throw new WrongTarget(`${fitting[0]!.id} would fit elsewhere; choose host-ams-5, whose VM does not`)
    await killHosts(lab, [target])
    return { on: target, hosts: [target] }
  },
  async step_fails(lab, target) {
    const { id } = hostAt(lab, target)
    const last = vmsOn(lab, [id]).at(-1)
    if (!last) throw new WrongTarget(`${target} has no VM whose start could fail`)
    // Keeps the storage readable and its files writable, but a new host cannot create its heartbeat
    // file there.
    chmodSync(storageDirectory(lab, last.id), 0o555)
    await killHosts(lab, [id])
    return { on: id, hosts: [id], readOnly: [last.id] }
  },
  drain(lab, target) {
    const { id } = hostAt(lab, target)
    runningPid(lab, id)
    if (!lab.draining.includes(id)) lab.draining.push(id)
    return { on: id, hosts: [id] }
  },
  async runaway_process(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    runningPid(lab, id)
    await lab.children.start(runawayOn(id), 'left-behind.ts', nodeDirectory(lab, id), {})
    return { on: id }
  },
  bad_deploy(lab, target) {
    const node = nodeAt(lab, target, 'web')
    if (!hasSite(lab, node))
      throw new WrongTarget(`${node.id} has no Git checkout: this machine has no git, or git failed in its directory`)
    if (brokenRoutes(lab, node)) throw new WrongTarget(`the routes of ${node.id} are already broken`)
    if (!deployBroken(lab, node)) throw new WrongTarget(`git commit failed on ${node.id}`)
    return { on: node.id }
  },
  async log_orders(lab, target) {
    const node = nodeAt(lab, target, 'web')
    runningPid(lab, node.id)
    // Writes the log before the service is down, because the alert names the log's path.
    writeOrders(lab, node)
    await lab.children.kill(node.id)
    return { on: node.id, files: [appLogFile] }
  },
  full_log(lab, target) {
    const node = nodeAt(lab, target, 'web')
    runningPid(lab, node.id)
    const root = nodeDirectory(lab, node.id)
    if (existsSync(join(root, traceLog))) throw new WrongTarget(`${node.id} writes its trace log already`)
    const files = fillTraceLog(lab, node, bytesToOverfill(lab, node), fileBytes)
    // Excludes files that may change: files that the node rotates, and files of git and apt.
    const changes = ['logs/access.log', 'site/.git/', 'system/var/', `${traceLog}.`]
    return { on: node.id, files, kept: beginningsBelow(root, (path) => !changes.some((each) => path.startsWith(each))) }
  },
  async missing_package(lab, target) {
    const node = nodeAt(lab, target, 'web')
    runningPid(lab, node.id)
    const missing = missingPrograms(packagePrograms)
    if (missing.length > 0)
      throw new WrongTarget(`this machine has no ${missing.join(', no ')}: no package is installed`)
    if (existsSync(join(nodeDirectory(lab, node.id), needsFile)))
      throw new WrongTarget(`the release on ${node.id} needs its missing package already`)
    await needPackage(lab, node)
    return { on: node.id, files: [needsFile] }
  },
  async port_squatter(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    const missing = missingPrograms(['ss'])
    if (missing.length > 0)
      throw new WrongTarget('this machine has no ss, the program that shows which process listens')
    runningPid(lab, id)
    const { port } = lab.children.get(id)!
    await lab.children.kill(id)
    lab.ports[id] = port
    await lab.children.start(portHolderOf(id), 'left-behind.ts', nodeDirectory(lab, id), { port })
    // Starts the node as a supervisor would. The start fails, and the service's log explains why.
    await startNode(lab, id).then(
      () => Promise.reject(new Error(`${id} listens on port ${port} although another process took it`)),
      () => undefined,
    )
    const { [portHolderOf(id)]: _, ...pids } = lab.children.pids()
    return { on: id, files: [appLogFile], pids }
  },
  config_drift(lab, target) {
    const node = nodeAt(lab, target, 'web')
    const file = configFile(lab, node)
    const config = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
    const drifted = node.role === 'web' ? { ...config, maxAgeSeconds: 0 } : { ...config, recordIntervalMs: 2000 }
    writeForNode(lab, file, `${JSON.stringify(drifted, null, 2)}\n`)
    return { on: node.id }
  },
  async relapse(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    runningPid(lab, id)
    limitLifetime(lab, id)
    await lab.children.kill(id)
    return { on: id, files: [lifetimeFile, appLogFile] }
  },
  async unended_alert(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    runningPid(lab, id)
    await lab.children.kill(id)
    return { on: id }
  },
  async backup_notice(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    runningPid(lab, id)
    await startBackups(lab, id)
    return { on: id }
  },
  async host_lost(lab, target) {
    const { id } = hostAt(lab, target)
    await killHosts(lab, [id])
    return { on: id, hosts: [id] }
  },
  false_alarm(lab, target) {
    const { id } = nodeAt(lab, target, 'web')
    runningPid(lab, id)
    return { on: id, pids: lab.children.pids() }
  },
  link_down(lab, target) {
    const link = lab.topology.links.find(({ a, b }) => target === linkId(a, b) || target === linkId(b, a))
    if (!link) throw new WrongTarget(`${target} is not a link; a link is written like host-osl-1~host-osl-2`)
    const on = linkId(link.a, link.b)
    if (!lab.linksDown.includes(on)) lab.linksDown.push(on)
    return { on }
  },
}

/** Kills all hosts at the same time. Each host's VMs are in its process group and die with it. */
async function killHosts(lab: Lab, hosts: string[]): Promise<void> {
  for (const host of hosts) runningPid(lab, host)
  await Promise.all(hosts.map((host) => lab.children.kill(host)))
}

function vmsOn(lab: Lab, hosts: string[]): VmPlan[] {
  return lab.topology.vms.filter(({ id }) => hosts.includes(lab.placement[id]!))
}

function isLargeEnough(host: HostPlan, vm: VmPlan): boolean {
  return host.ramMib >= vm.ramMib && host.cpuMc >= vm.cpuMc
}

function bytesToOverfill(lab: Lab, node: NodePlan): number {
  return node.diskQuotaBytes * overfull - usedBytes(bytesByDirectory(nodeDirectory(lab, node.id)))
}

/** Writes random bytes, which no file system compresses, until the node is well over its quota. */
function fill(lab: Lab, node: NodePlan, directory: string, prefix: string): string[] {
  const root = nodeDirectory(lab, node.id)
  const files: string[] = []
  for (let left = bytesToOverfill(lab, node); left > 0; left -= fileBytes) {
    const file = join(directory, `${prefix}-${randomBytes(4).toString('hex')}.bin`)
    writeForNode(lab, join(root, file), randomBytes(Math.ceil(Math.min(left, fileBytes))))
    files.push(file)
  }
  return files
}
