import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openChildren } from './children.ts'
import { startAgents } from './devices.ts'
import { makeSystem } from './packages.ts'
import { nodeAccount } from './process.ts'
import { makeSite } from './site.ts'
import { desiredConfig, type Lab, nodeDirectory, ownDirectory, readState, writeForNode } from './state.ts'
import { type NodePlan, topologyOf } from './topology.ts'
import { startVmsOf } from './vm.ts'

export async function startLab(
  dir: string,
  options: { webShards: number; lagSeconds: number; paceSeconds: number },
): Promise<Lab> {
  const account = nodeAccount()
  const topology = topologyOf(options.webShards)
  mkdirSync(dir, { recursive: true })
  // Nodes of another user reach their own directories through this one, but cannot list it.
  chmodSync(dir, account ? 0o711 : 0o700)
  const children = openChildren(dir, account)
  const { lagSeconds, paceSeconds } = options
  const lab: Lab = {
    dir,
    topology,
    account,
    children,
    lagSeconds,
    paceSeconds,
    underWay: {},
    ports: {},
    breaking: Promise.resolve(),
    monitoring: null,
    database: null,
    ...readState(dir, topology),
  }
  try {
    for (const { id } of topology.hosts) ownDirectory(lab, join(dir, 'hosts', id))
    for (const { id } of topology.vms) ownDirectory(lab, join(dir, 'storage', id))
    for (const node of topology.nodes) prepareNode(lab, node)
    const first = topology.nodes.filter(({ role }) => role !== 'replica')
    await Promise.all([
      ...first.map(({ id }) => startNode(lab, id)),
      ...topology.hosts.map(({ id }) => startHost(lab, id)),
    ])
    // A replica gets its primary's address.
    await Promise.all(topology.nodes.filter(({ role }) => role === 'replica').map(({ id }) => startNode(lab, id)))
    await startAgents(lab)
  } catch (error) {
    await children.stopAll()
    throw error
  }
  return lab
}

export async function startNode(lab: Lab, id: string): Promise<void> {
  const node = lab.topology.nodes.find((each) => each.id === id)!
  const shard = lab.topology.shards.find((each) => each.id === node.shard)!
  const directory = nodeDirectory(lab, id)
  const peer = (role: NodePlan['role']) =>
    lab.topology.nodes.find((each) => each.shard === node.shard && each.role === role)!.id
  if (node.role === 'web') {
    await lab.children.start(id, 'web.ts', directory, { tenants: shard.tenants, port: lab.ports[id] ?? 0 })
  } else if (node.role === 'primary') {
    const { port } = await lab.children.start(id, 'primary.ts', directory, {})
    lab.children.tell(peer('replica'), { primaryPort: port })
  } else {
    const primaryPort = lab.children.get(peer('primary'))?.port ?? 0
    await lab.children.start(id, 'replica.ts', directory, { primaryPort })
  }
}

/** Starts a host and the VMs that are defined on it. */
export async function startHost(lab: Lab, id: string): Promise<void> {
  // Relative, for the host's user may not be able to pass through what lies above.
  await lab.children.start(id, 'host.ts', join(lab.dir, 'hosts', id), { storage: '../../storage' })
  await startVmsOf(lab, id)
}

function prepareNode(lab: Lab, node: NodePlan): void {
  const shard = lab.topology.shards.find(({ id }) => id === node.shard)!
  const root = nodeDirectory(lab, node.id)
  for (const name of ['', 'data', 'etc', 'logs', 'tenants', 'tmp']) ownDirectory(lab, join(root, name))
  const once = (file: string, text: string) => {
    if (!existsSync(file)) writeForNode(lab, file, text)
  }
  // Only where it is missing: a drifted file stays drifted over a restart.
  once(join(root, 'etc', 'config.json'), desiredConfig(lab, node))
  for (const id of shard.tenants) {
    const { name } = lab.topology.tenants.find((each) => each.id === id)!
    ownDirectory(lab, join(root, 'tenants', id))
    once(join(root, 'tenants', id, 'index.html'), `<!doctype html><title>${name}</title><h1>${name}</h1>\n`)
  }
  if (node.role === 'web') {
    makeSite(lab, node)
    makeSystem(lab, node)
  }
}
