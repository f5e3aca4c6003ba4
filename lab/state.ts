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

/** A fault of a database: who is the root, and what must be as it was. */
const brokenDatabase = z.object({
  /** The root in words, with the exact session, slot, table or statement. */
  root: z.string(),
  rootSession: shopSession.nullable().default(null),
  /** Sessions that must live: process and beginning. */
  sessions: z.array(shopSession),
  /** Other facts that must not change, or that tell whether the cause is gone. */
  facts: z.record(z.string(), z.string()),
})
export type BrokenDatabase = z.infer<typeof brokenDatabase>

/** A fault that was broken in and not healed, with what the oracle must compare afterwards. */
export const fault = z.object({
  fault: faultName,
  /** The request's subject, e.g. a shard. */
  target: z.string(),
  /** The node, host, rack or link that it hit. */
  on: z.string(),
  at: z.iso.datetime(),
  /** Files written by the fault, relative to the node's directory. */
  files: z.array(z.string()),
  /** Hosts that it killed or, for `drain`, marked. */
  hosts: z.array(z.string()).default([]),
  /** Counters of the VMs that were on these hosts. */
  counters: z.record(z.string(), z.number()),
  /** VMs whose storage it made read-only. */
  readOnly: z.array(z.string()).default([]),
  /** Where every VM was defined to run at that moment. */
  placement: z.record(z.string(), z.string()).default({}),
  /**
   * Files of the node that must stay, by relative path: that many first bytes with this sha256.
   * Logs may grow.
   */
  kept: z.record(z.string(), z.object({ bytes: z.number(), sha256: z.string() })).default({}),
  /** Every process of the lab that must stay, by its id. */
  pids: z.record(z.string(), z.number()).default({}),
  /** sha256 of every file that belongs to a tenant, at the moment after the fault. */
  tenantData: z.record(z.string(), z.string()),
  /** What a fault of the drawer of databases was compared with; null for every other fault. */
  database: brokenDatabase.nullable().default(null),
  /** A fault of the cluster as its API showed it; null for every other fault. */
  cluster: z.record(z.string(), z.string()).nullable().default(null),
})
export type Fault = z.infer<typeof fault>

/** What outlives the controller. Everything else is measured. */
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
  /** Where each VM is defined to run. */
  placement: Record<string, string>
  /** VMs on their way to a host: they take room there already. Not kept over a restart. */
  underWay: Record<string, string>
  /** Nodes that must keep their port; others take any. Not kept over a restart. */
  ports: Record<string, number>
  linksDown: string[]
  /** Hosts that somebody wants emptied. */
  draining: string[]
  faults: Fault[]
  /** The power switches tell that a dead host is off. Not kept over a restart. */
  confirmsPower: boolean
  /** Resolves when the fault under way is whole: half of one raises no alert. */
  breaking: Promise<unknown>
  /** Above this a replica counts as lagging. */
  lagSeconds: number
  /** After so many seconds a service whose lifetime is limited ends, and a backup begins again. */
  paceSeconds: number
  /** The web nodes' monitoring and PostgreSQL; null until asked for. Not kept over a restart. */
  monitoring: Monitoring | null
  database: LabDatabase | null
  /** PostgreSQL and MariaDB with replicas; null until asked for. Not kept over a restart. */
  drawer: DatabaseDrawer | null
  /** A Kubernetes of two nodes; null until somebody asks for it. Not kept over a restart. */
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

/** Makes a directory that belongs to whom nodes run as. */
export function ownDirectory({ account }: Lab, path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o755 })
  if (account) chownSync(path, account.uid, account.gid)
}

/** Writes what the controller puts into a node's directory, owned by the node. */
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
  // Databases and cluster ended with the lab, and what was broken in them too.
  const faults = kept.faults.filter(({ fault: name }) => !isDatabaseFault(name) && !isClusterFault(name))
  return { ...kept, faults, placement: { ...initial, ...kept.placement } }
}

/** The fault cannot hit this target; nothing was broken. */
export class WrongTarget extends Error {
  override name = 'WrongTarget'
}

/** The node that is named, or the one of the named shard that such a fault hits. */
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

/** The process of what is to be broken: what is down already cannot be. */
export function runningPid(lab: Lab, id: string): number {
  const child = lab.children.get(id)
  if (!child) throw new WrongTarget(`${id} is already down`)
  return child.pid
}

export function configFile(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), 'etc', 'config.json')
}
