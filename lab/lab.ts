import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { listFaults } from '../domain/schema-faults.ts'
import { nodeAccount, openChildren } from './children.ts'
import { removeDrawer } from './databases/drawer.ts'
import { startAgents } from './devices.ts'
import { removeCluster } from './kubernetes/drawer.ts'
import { makeSystem } from './packages.ts'
import { desiredConfig, type Lab, nodeDirectory, ownDirectory, readState, writeForNode } from './state.ts'
import { makeSite, type NodePlan, topologyOf } from './topology.ts'
import { startVmsOf } from './vm.ts'

const port = z.coerce.number().int().min(0).max(65_535)
const token = z.string().min(16)

/**
 * The lab's environment variables. The lab is a separate program, so it reads its own variables.
 */
const environment = z
  .object({
    LAB_PORT: port.default(0),
    LAB_DIR: z.string().min(1),
    LAB_PLATFORM_TOKEN: token,
    LAB_CONTROL_TOKEN: token,
    ALERT_URL: z.url(),
    ALERT_TOKEN: z.string().min(1),
    LAB_WEB_SHARDS: z.coerce.number().int().min(0).max(24).default(2),
    LAB_PROBE_INTERVAL_MS: z.coerce.number().int().min(50).default(1000),
    LAB_LAG_SECONDS: z.coerce.number().positive().default(3),
    LAB_PACE_SECONDS: z.coerce.number().positive().default(20),
  })
  .refine((each) => each.LAB_PLATFORM_TOKEN !== each.LAB_CONTROL_TOKEN, {
    path: ['LAB_CONTROL_TOKEN'],
    error: 'must differ from LAB_PLATFORM_TOKEN: users of the platform may neither break it nor ask the oracle',
  })
type LabSettings = z.infer<typeof environment>

/** Reads the lab's settings. Throws one error that names all invalid settings. */
export function labSettings(env: Record<string, string | undefined>): LabSettings {
  const parsed = environment.safeParse(env)
  if (parsed.success) return parsed.data
  const problems = listFaults(parsed.error).map(({ field, message }) => `  ${field}: ${message}`)
  throw new Error(`the lab cannot start:\n${problems.join('\n')}`)
}

export async function startLab(
  dir: string,
  options: { webShards: number; lagSeconds: number; paceSeconds: number },
): Promise<Lab> {
  const account = nodeAccount()
  const topology = topologyOf(options.webShards)
  mkdirSync(dir, { recursive: true })
  // Lets nodes reach their own directories through this directory without listing it, if they run
  // as another user.
  chmodSync(dir, account ? 0o711 : 0o700)
  const children = openChildren(dir, account)
  removeDrawer(dir)
  removeCluster(dir)
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
    confirmsPower: true,
    breaking: Promise.resolve(),
    monitoring: null,
    database: null,
    drawer: null,
    cluster: null,
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
    // Starts replicas last, because a replica gets its primary's address.
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
  // Passes a relative path of the storage, because the host's user may be unable to enter the
  // parent directories.
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
  // Writes a file only if it is missing, so that a drifted file stays drifted over a restart.
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
