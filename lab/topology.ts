import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'

/**
 * The parts of the lab, as data. They are only the desired state; the present state is measured.
 */
type ShardPlan = {
  id: string
  region: string
  role: 'database' | 'web'
  config: Record<string, string | number | boolean>
  tenants: string[]
}
export type NodePlan = {
  id: string
  shard: string
  region: string
  role: 'primary' | 'replica' | 'web'
  diskQuotaBytes: number
}
export type TenantPlan = { id: string; name: string; shard: string }
export type HostPlan = { id: string; region: string; rack: string; ramMib: number; cpuMc: number }
export type VmPlan = {
  id: string
  host: string
  ramMib: number
  cpuMc: number
  haGroup: string | null
  /** VMs with a higher priority are started first if not all can run. */
  priority: number
  tenant: string | null
}
type LinkPlan = { a: string; b: string; cost: number }

export type Topology = {
  regions: string[]
  shards: ShardPlan[]
  nodes: NodePlan[]
  tenants: TenantPlan[]
  hosts: HostPlan[]
  vms: VmPlan[]
  links: LinkPlan[]
}

const regions = ['osl', 'ams'] as const

const names = ['Aurora', 'Birch', 'Cobalt', 'Dune', 'Ember', 'Fjord', 'Garnet', 'Harbor', 'Iris', 'Juniper'] as const

/** The disk quota of a web node, small enough for a few real megabytes to fill the disk. */
const webQuotaBytes = 4 * 1024 * 1024
/** A quota that lasts two weeks, because the database log grows by about 17 MB a day. */
const databaseQuotaBytes = 256 * 1024 * 1024

const host = { ramMib: 32_768, cpuMc: 16_000 }

/**
 * A host with much memory and few CPUs. Its VMs fit on no other host, and no other host's VMs fit
 * on it.
 */
const large: HostPlan = { id: 'host-ams-5', region: 'ams', rack: 'ams-r3', ramMib: 65_536, cpuMc: 6_000 }

const hosts: HostPlan[] = [
  ...regions.flatMap((region) =>
    [1, 2, 3, 4].map((n) => ({ id: `host-${region}-${n}`, region, rack: `${region}-r${n <= 2 ? 1 : 2}`, ...host })),
  ),
  large,
]

/**
 * The priorities of groups of VMs, for the case that not all VMs can run. A VM without a group has
 * the default.
 */
const priorities: Record<string, number> = {
  'ha-ledger': 100,
  'ha-broker': 80,
  'ha-search': 60,
  'ha-queue': 40,
  'ha-mail': 40,
  'ha-cache': 20,
}

/**
 * The VMs of all hosts. Hosts are 60 to 70 % full. The VMs of one lost host fit on the other hosts
 * of its region together, but not on any single one. The VMs of a lost rack do not fit: the more
 * important ones run again, the others stay down.
 *
 * The loss of host-osl-1 shows the rules. Balance alone would start vm-101 on host-osl-4, the
 * emptiest host, in the rack of vm-107 (on host-osl-3), the other VM of its group. With rack
 * constraints the plan differs.
 */
const vms: VmPlan[] = [
  vm('vm-101', 'host-osl-1', 8192, 4000, 'ha-ledger'),
  vm('vm-102', 'host-osl-1', 6144, 3000, 'ha-broker'),
  vm('vm-103', 'host-osl-1', 6144, 3000),
  vm('vm-104', 'host-osl-2', 10240, 5000),
  vm('vm-105', 'host-osl-2', 8192, 3000, 'ha-search'),
  vm('vm-106', 'host-osl-2', 4096, 2500),
  vm('vm-107', 'host-osl-3', 8192, 4000, 'ha-ledger'),
  vm('vm-108', 'host-osl-3', 6144, 3000, 'ha-mail'),
  vm('vm-109', 'host-osl-3', 8192, 3500),
  vm('vm-110', 'host-osl-4', 8192, 4000, 'ha-broker'),
  vm('vm-111', 'host-osl-4', 6144, 3000, 'ha-cache'),
  vm('vm-112', 'host-osl-4', 5120, 2500),
  vm('vm-113', 'host-ams-1', 8192, 4000, 'ha-search'),
  vm('vm-114', 'host-ams-1', 8192, 4000, 'ha-queue'),
  vm('vm-115', 'host-ams-1', 5120, 2500),
  vm('vm-116', 'host-ams-2', 10240, 4500, 'ha-mail'),
  vm('vm-117', 'host-ams-2', 6144, 3000, 'ha-cache'),
  vm('vm-118', 'host-ams-2', 6144, 3000),
  vm('vm-119', 'host-ams-3', 8192, 4000, 'ha-queue'),
  vm('vm-120', 'host-ams-3', 8192, 4000, 'ha-broker'),
  vm('vm-121', 'host-ams-3', 5120, 2500),
  vm('vm-122', 'host-ams-4', 10240, 5000, 'ha-search'),
  vm('vm-123', 'host-ams-4', 6144, 3000),
  vm('vm-124', 'host-ams-4', 5120, 2500),
  { ...vm('vm-125', large.id, 49_152, 5_000), priority: 90 },
]

/**
 * Links between hosts. A link costs 1 in a rack, 5 between racks, and 20 or more between regions.
 * Two cables connect the regions, so that one may break.
 */
const links: LinkPlan[] = [
  ...regions.flatMap((region) => [
    { a: `host-${region}-1`, b: `host-${region}-2`, cost: 1 },
    { a: `host-${region}-3`, b: `host-${region}-4`, cost: 1 },
    { a: `host-${region}-1`, b: `host-${region}-3`, cost: 5 },
    { a: `host-${region}-2`, b: `host-${region}-4`, cost: 5 },
  ]),
  { a: 'host-ams-3', b: large.id, cost: 5 },
  { a: 'host-osl-1', b: 'host-ams-1', cost: 20 },
  { a: 'host-osl-3', b: 'host-ams-3', cost: 25 },
]

function vm(id: string, on: string, ramMib: number, cpuMc: number, haGroup: string | null = null): VmPlan {
  return { id, host: on, ramMib, cpuMc, haGroup, priority: priorities[haGroup ?? ''] ?? 0, tenant: null }
}

function shard(role: ShardPlan['role'], region: string, n: number, position: number): ShardPlan {
  return {
    id: `${role === 'database' ? 'db' : 'web'}-${region}-${n}`,
    region,
    role,
    config:
      role === 'database' ? { recordIntervalMs: 200 } : { maxAgeSeconds: 60, greeting: 'served by nightshift lab' },
    tenants: [0, 1].map((offset) => `tenant-${position * 2 + offset + 1}`),
  }
}

function nodesOf({ id, region, role }: ShardPlan): NodePlan[] {
  const diskQuotaBytes = role === 'database' ? databaseQuotaBytes : webQuotaBytes
  return (['a', 'b'] as const).map((letter) => ({
    id: `node-${id}${letter}`,
    shard: id,
    region,
    role: role === 'web' ? 'web' : letter === 'a' ? 'primary' : 'replica',
    diskQuotaBytes,
  }))
}

/**
 * Builds one database shard per region, `webShards` web shards that alternate between the regions,
 * and nine hosts with 25 VMs.
 */
export function topologyOf(webShards: number): Topology {
  const shards = [
    ...regions.map((region, position) => shard('database', region, 1, position)),
    ...Array.from({ length: webShards }, (_, i) =>
      shard('web', regions[i % 2]!, Math.floor(i / 2) + 1, regions.length + i),
    ),
  ]
  const tenants = shards.flatMap(({ id, tenants }) =>
    tenants.map((tenant) => ({ id: tenant, name: tenantName(tenant), shard: id })),
  )
  return {
    regions: [...regions],
    shards,
    nodes: shards.flatMap(nodesOf),
    tenants,
    hosts,
    vms: vms.map((each, i) => (i % 3 === 2 ? { ...each, tenant: tenants[i % tenants.length]!.id } : each)),
    links,
  }
}

function tenantName(id: string): string {
  const n = Number(id.slice('tenant-'.length)) - 1
  const round = Math.floor(n / names.length)
  return round === 0 ? names[n]! : `${names[n % names.length]} ${round + 1}`
}

/** The file that maps addresses, in each web node's git checkout. */
export const routesFile = 'site/routes.json'
const featuresFile = 'site/features.json'

/** The author of the lab's commits. git reads no settings of the machine or of the user. */
const environment = {
  PATH: '/usr/bin:/bin',
  HOME: '/nonexistent',
  LC_ALL: 'C.UTF-8',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'Deploy',
  GIT_AUTHOR_EMAIL: 'deploy@lab.internal',
  GIT_COMMITTER_NAME: 'Deploy',
  GIT_COMMITTER_EMAIL: 'deploy@lab.internal',
}

/**
 * Creates a node's git checkout with its first commit, unless the checkout exists. Leaves no
 * checkout if git is missing or fails.
 */
export function makeSite(lab: Lab, node: NodePlan): void {
  if (hasSite(lab, node)) return
  const directory = siteDirectory(lab, node)
  rmSync(directory, { recursive: true, force: true })
  ownDirectory(lab, directory)
  writeForNode(lab, routesOf(lab, node), desiredRoutes(lab, node))
  writeForNode(lab, featuresOf(lab, node), desiredFeatures)
  const isMade =
    git(lab, node, 'init', '--quiet', '--template=', '--initial-branch=main') !== null &&
    git(lab, node, 'add', 'routes.json', 'features.json') !== null &&
    git(lab, node, 'commit', '--quiet', '--message=First routes') !== null
  if (!isMade) rmSync(directory, { recursive: true, force: true })
}

/** Resets a node's git checkout to its first state, whatever was committed since. */
export function renewSite(lab: Lab, node: NodePlan): void {
  rmSync(siteDirectory(lab, node), { recursive: true, force: true })
  makeSite(lab, node)
}

export function hasSite(lab: Lab, node: NodePlan): boolean {
  return git(lab, node, 'rev-parse', '--verify', 'HEAD') !== null
}

/**
 * Commits a routes file that ends in the middle, as an interrupted deploy does. False if git
 * failed.
 */
export function deployBroken(lab: Lab, node: NodePlan): boolean {
  const whole = desiredRoutes(lab, node)
  writeForNode(lab, routesOf(lab, node), `${whole.slice(0, whole.lastIndexOf('"'))}\n`)
  return git(lab, node, 'commit', '--quiet', '--all', '--message=Deploy 42') !== null
}

/**
 * Commits a release that turns on a search whose index is missing, so that searches fail. False if
 * git failed.
 */
export function deployFeature(lab: Lab, node: NodePlan): boolean {
  writeForNode(lab, featuresOf(lab, node), `${JSON.stringify({ searchV2: true }, null, 2)}\n`)
  return (
    git(lab, node, 'add', 'features.json') !== null &&
    git(lab, node, 'commit', '--quiet', '--message=Deploy 43: search v2') !== null
  )
}

/** Returns the path of the routes file if the file is not JSON. Null for valid JSON, or no file. */
export function brokenRoutes(lab: Lab, node: NodePlan): string | null {
  const file = routesOf(lab, node)
  try {
    JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    return error instanceof SyntaxError ? file : null
  }
  return null
}

/** Lists deviations of a node's git checkout: files with wrong content, and uncommitted changes. */
export function siteProblems(lab: Lab, node: NodePlan): string[] {
  const problems: string[] = []
  let routes: string | null = null
  try {
    routes = readFileSync(routesOf(lab, node), 'utf8')
  } catch {
    // Ignores the error: below, an unreadable file counts as a deviation.
  }
  if (routes !== desiredRoutes(lab, node)) problems.push(`${routesFile} is not as desired`)
  if (readFeatures(lab, node) !== desiredFeatures) problems.push(`${featuresFile} is not as desired`)
  const changed = git(lab, node, 'status', '--porcelain')
  if (changed === null) problems.push('git cannot report whether everything is committed')
  else if (changed !== '') problems.push(`not committed: ${changed.trim().replaceAll('\n', ', ')}`)
  return problems
}

function desiredRoutes(lab: Lab, node: NodePlan): string {
  const { tenants } = lab.topology.shards.find(({ id }) => id === node.shard)!
  const routes = Object.fromEntries(tenants.map((tenant) => [`/${tenant}`, `tenants/${tenant}/index.html`]))
  return `${JSON.stringify({ routes }, null, 2)}\n`
}

const desiredFeatures = `${JSON.stringify({ searchV2: false }, null, 2)}\n`

const featuresOf = (lab: Lab, { id }: NodePlan): string => join(nodeDirectory(lab, id), featuresFile)

/**
 * Reads the features file. A checkout of an earlier version has no such file, and therefore no
 * features.
 */
function readFeatures(lab: Lab, node: NodePlan): string {
  try {
    return readFileSync(featuresOf(lab, node), 'utf8')
  } catch {
    return desiredFeatures
  }
}

function routesOf(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), routesFile)
}

function siteDirectory(lab: Lab, { id }: NodePlan): string {
  return join(nodeDirectory(lab, id), 'site')
}

/**
 * Runs git in a node's checkout as the node's user, and returns its output. Null if git fails or is
 * missing.
 */
function git(lab: Lab, node: NodePlan, ...words: string[]): string | null {
  const { status, stdout } = spawnSync('git', ['--git-dir=.git', '--work-tree=.', ...words], {
    cwd: siteDirectory(lab, node),
    env: environment,
    encoding: 'utf8',
    ...lab.account,
  })
  return status === 0 ? stdout : null
}
