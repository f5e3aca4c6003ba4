import { chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { type Children, type LabAccount, writeWhole } from './children.ts'
import type { LabDatabase } from './database.ts'
import type { DatabaseDrawer } from './databases/drawer.ts'
import { databaseFaults, isDatabaseFault } from './databases/faults.ts'
import { shopSession } from './databases/session.ts'
import type { LabCluster } from './kubernetes/drawer.ts'
import { clusterFaults, isClusterFault } from './kubernetes/faults.ts'
import type { Monitoring } from './monitoring.ts'
import { metricFaults } from './monitoring-rules.ts'
import type { HostPlan, NodePlan, Topology } from './topology.ts'

export const faultName = z.enum([
  'replication_lag',
  'disk_pressure',
  'disk_pressure_tenant',
  'service_down',
  'host_down',
  'rack_down',
  'no_room',
  'step_fails',
  'drain',
  'config_drift',
  'link_down',
  'runaway_process',
  'bad_deploy',
  'log_orders',
  'full_log',
  'missing_package',
  'port_squatter',
  'relapse',
  'unended_alert',
  'backup_notice',
  'host_lost',
  'false_alarm',
  ...metricFaults,
  ...databaseFaults,
  ...clusterFaults,
])
export type FaultName = z.infer<typeof faultName>

/**
 * The state of a database fault right after it was broken in: its root cause, and facts for later
 * comparison.
 */
const brokenDatabase = z.object({
  /** The root cause in words, with the exact session, slot, table or statement. */
  root: z.string(),
  rootSession: shopSession.nullable().default(null),
  /** Sessions that must still exist, identified by process and start. */
  sessions: z.array(shopSession),
  /** Other facts about the servers that must not change, or that show whether the cause is gone. */
  facts: z.record(z.string(), z.string()),
})
export type BrokenDatabase = z.infer<typeof brokenDatabase>

/** A fault that was broken in and not healed, with the data that the oracle compares. */
export const fault = z.object({
  fault: faultName,
  /** The target in the request that broke the fault in, for example a shard. */
  target: z.string(),
  /** The node, host, rack or link that the fault broke. */
  on: z.string(),
  at: z.iso.datetime(),
  /** Files that the fault wrote, relative to the node's directory. */
  files: z.array(z.string()),
  /** Hosts that the fault killed. For `drain`, hosts that are to be emptied. */
  hosts: z.array(z.string()).default([]),
  /** The counters of the VMs that were on `hosts`, at the time of the fault. */
  counters: z.record(z.string(), z.number()),
  /** VMs whose storage the fault made read-only. */
  readOnly: z.array(z.string()).default([]),
  /** The host on which each VM was defined to run when the fault was broken in. */
  placement: z.record(z.string(), z.string()).default({}),
  /**
   * Files of the node that must remain, by relative path. The first `bytes` bytes must have this
   * sha256, because logs may grow.
   */
  kept: z.record(z.string(), z.object({ bytes: z.number(), sha256: z.string() })).default({}),
  /** Pids of all processes that nobody may end, by the id of the lab's child. */
  pids: z.record(z.string(), z.number()).default({}),
  /** The sha256 of every file that belongs to a tenant, just after the fault was broken in. */
  tenantData: z.record(z.string(), z.string()),
  /** The state of a database fault, for comparison; null for every other fault. */
  database: brokenDatabase.nullable().default(null),
  /** A cluster fault as the API showed it when broken in. Null for every other fault. */
  cluster: z.record(z.string(), z.string()).nullable().default(null),
})
export type Fault = z.infer<typeof fault>

/** The part of the lab's state that outlives the controller. All other state is measured. */
const state = z.object({
  placement: z.record(z.string(), z.string()),
  linksDown: z.array(z.string()),
  draining: z.array(z.string()).default([]),
  faults: z.array(fault),
})

export type Lab = {
  dir: string
  topology: Topology
  account: LabAccount | null
  children: Children
  /** The host on which each VM is defined to run. */
  placement: Record<string, string>
  /**
   * The host to which each VM is being moved. The VM already takes room on this host. Not kept over
   * a restart.
   */
  underWay: Record<string, string>
  /** Ports that nodes must keep. A node without an entry uses any port. Not kept over a restart. */
  ports: Record<string, number>
  linksDown: string[]
  /** Hosts that are to be emptied. */
  draining: string[]
  faults: Fault[]
  /** Whether the power switches confirm that a dead host is off. Not kept over a restart. */
  confirmsPower: boolean
  /**
   * Resolves when the fault that is being broken in is complete. An incomplete fault must not raise
   * an alert.
   */
  breaking: Promise<unknown>
  /** Seconds of lag above which a replica counts as lagging. */
  lagSeconds: number
  /**
   * Seconds after which a service with a limited lifetime ends. Also the seconds between the starts
   * of two backups.
   */
  paceSeconds: number
  /** The web nodes' monitoring and PostgreSQL; null until requested. Not kept over a restart. */
  monitoring: Monitoring | null
  database: LabDatabase | null
  /** PostgreSQL and MariaDB with replicas; null until requested. Not kept over a restart. */
  drawer: DatabaseDrawer | null
  /** A Kubernetes cluster of two nodes; null until requested. Not kept over a restart. */
  cluster: LabCluster | null
}

export function saveState({ dir, placement, linksDown, draining, faults }: Lab): void {
  writeWhole(join(dir, 'state.json'), JSON.stringify({ placement, linksDown, draining, faults }))
}

export function storageDirectory({ dir }: Lab, vm: string): string {
  return join(dir, 'storage', vm)
}

export function nodeDirectory({ dir }: Lab, id: string): string {
  return join(dir, 'nodes', id)
}

/** Creates a directory that belongs to the nodes' user. */
export function ownDirectory({ account }: Lab, path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o755 })
  if (account) chownSync(path, account.uid, account.gid)
}

/** Writes a file into a node's directory. The file belongs to the nodes' user. */
export function writeForNode(lab: Lab, file: string, bytes: string | Uint8Array): void {
  writeFileSync(file, bytes)
  if (lab.account) chownSync(file, lab.account.uid, lab.account.gid)
}

export function desiredConfig(lab: Lab, node: NodePlan): string {
  return `${JSON.stringify(lab.topology.shards.find(({ id }) => id === node.shard)!.config, null, 2)}\n`
}

export function readState(dir: string, topology: Topology): z.infer<typeof state> {
  const initial = Object.fromEntries(topology.vms.map(({ id, host }) => [id, host]))
  const file = join(dir, 'state.json')
  if (!existsSync(file)) return { placement: initial, linksDown: [], draining: [], faults: [] }
  const kept = state.parse(JSON.parse(readFileSync(file, 'utf8')))
  // Drops the faults of databases and cluster, because both ended with the lab.
  const faults = kept.faults.filter(({ fault: name }) => !isDatabaseFault(name) && !isClusterFault(name))
  return { ...kept, faults, placement: { ...initial, ...kept.placement } }
}

/** An error: the fault cannot break this target, and nothing was broken. */
export class WrongTarget extends Error {
  override name = 'WrongTarget'
}

/** Returns the node that `target` names, or the node of this shard with this role. */
export function nodeAt(lab: Lab, target: string, role: NodePlan['role']): NodePlan {
  const node = lab.topology.nodes.find(({ id }) => id === target)
  const found = node ?? lab.topology.nodes.find((each) => each.shard === target && each.role === role)
  if (!found) throw new WrongTarget(`${target} is neither a node nor a shard with a ${role} node`)
  if (role === 'replica' && found.role !== 'replica') throw new WrongTarget(`${target} is not a replica`)
  if (role === 'web' && found.role !== 'web') throw new WrongTarget(`${target} is not a web node`)
  return found
}

export function hostAt(lab: Lab, target: string): HostPlan {
  const host = lab.topology.hosts.find(({ id }) => id === target)
  if (!host) throw new WrongTarget(`${target} is not a host`)
  return host
}

/** Returns the pid of a process that is to be broken. Throws if the process is not running. */
export function runningPid(lab: Lab, id: string): number {
  const child = lab.children.get(id)
  if (!child) throw new WrongTarget(`${id} is already down`)
  return child.pid
}

export function configFile(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), 'etc', 'config.json')
}
