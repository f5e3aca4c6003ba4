import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { EffectAnswer, HostState, Inventory, PlatformEffect, VmState } from '../../domain/platform.ts'
import { HttpError } from '../http.ts'
import { type PlatformClient, PlatformError } from '../platform.ts'
import {
  type ApiPath,
  createProxmoxApi,
  type Form,
  isSilence,
  type ProxmoxApi,
  type ProxmoxApiOptions,
  upid,
} from './api.ts'
import { type Cluster, type ClusterNode, type Guest, readCluster } from './cluster.ts'
import { type Constraints, flag, getReachableNodes, guestFacts, sidOf, vmIdOf } from './facts.ts'
import { type PlatformOperation, planMigration, planPower, planStart } from './operation.ts'
import { lostAfterSeconds, type PlatformJournal, readOutcome, taskFromList } from './outcome.ts'

/** Facts about a guest that `GET /cluster/resources` lacks. A field is null while unknown. */
export type GuestFacts = {
  constraints: Constraints | null
  name: string | null
  /** Addresses in the guest's configuration. */
  addresses: string[]
  isRunning: boolean
  ramMib: number | null
  cpuMc: number | null
}

/**
 * The size that stands for an unknown size. A guest with it stays, and a plan must not count on its
 * room.
 */
const unknownSize = 1

/** A note in a plan about what the sizes of guests leave out. */
const sizeNote =
  'Every guest counts with its maximum memory (maxmem), without savings by ballooning and KSM. The memory of QEMU itself is not counted: the reserve of the hosts (PLACEMENT_RAM_RESERVE_PERCENT) must cover it.'

/**
 * Converts Proxmox's terms to Nightshift's terms. `racks` is by node; a node without an entry is a
 * separate rack.
 */
function inventoryOf(
  cluster: Cluster,
  rules: HaRules,
  facts: Map<number, GuestFacts>,
  racks: Record<string, string>,
): Inventory {
  const region = cluster.name
  const hosts: HostState[] = [...cluster.nodes.values()].map((node) => ({
    id: node.name,
    aliases: node.address === null ? [] : [node.address],
    region,
    rack: racks[node.name] ?? node.name,
    state: stateOf(node),
    ramMib: node.ramMib ?? unknownSize,
    cpuMc: node.cpuMc ?? unknownSize,
    // Has no time of the fencing, because Proxmox reports none. An agent's report from shortly
    // before therefore counts until it is old.
    ...(node.isFenced && { fenced: { by: 'its HA manager', at: null } }),
  }))
  const vms: VmState[] = [...cluster.guests.values()]
    // Leaves out a guest whose node has left the cluster, because the guest has no host.
    .filter((guest) => !guest.isTemplate && cluster.nodes.has(guest.node))
    .map((guest) => {
      const known = facts.get(guest.vmid)
      const sid = sidOf(guest.kind, guest.vmid)
      return {
        id: vmIdOf(guest.vmid),
        ...(known?.name && { name: known.name }),
        // Adds the bare number, which is all that exporters write, such as in `id="qemu/101"`.
        aliases: [String(guest.vmid), ...(known?.addresses ?? [])],
        host: guest.node,
        running: known?.isRunning ?? false,
        ramMib: known?.ramMib ?? unknownSize,
        cpuMc: known?.cpuMc ?? unknownSize,
        haGroup: rules.apart.get(sid) ?? null,
        priority: priorityOf(guest),
        pinnedTo: pinsOf(cluster, rules, guest, known),
        forbiddenHosts: [],
        affinityGroup: rules.together.get(sid) ?? null,
        tenant: null,
        ...(guest.ha?.wanted === 'started' && guest.ha.state !== 'error' && { restartsElsewhere: true }),
        // Is always null: the uptime in the statistics is seconds old, so no start is exact enough
        // to prove a restart.
        startedAt: null,
        busy: busyOf(guest),
      }
    })
  return { regions: [{ id: region }], shards: [], nodes: [], tenants: [], hosts, vms, links: [] }
}

function busyOf({ lock, ha }: Guest): string | null {
  if (lock !== null) return `locked: ${lock}`
  return ha?.destination ? `the HA manager is moving the guest to ${ha.destination}` : null
}

/**
 * Returns a node's state. A node without sizes, whose statistics hang, takes no new guests, but its
 * guests may leave.
 */
function stateOf(node: ClusterNode): HostState['state'] {
  if (!node.isOnline) return 'dead'
  return node.isInMaintenance || node.ramMib === null || node.cpuMc === null ? 'draining' : 'live'
}

function priorityOf({ tags }: Guest): number {
  for (const tag of tags) {
    const [, number] = /^nightshift-priority-(\d{1,4})$/.exec(tag) ?? []
    if (number !== undefined) return Math.min(1_000, Number(number))
  }
  return 0
}

/**
 * Lists the only hosts that may run the guest. Empty if any host may. A guest whose facts are
 * unknown stays on its host.
 */
function pinsOf(cluster: Cluster, rules: HaRules, guest: Guest, known: GuestFacts | undefined): string[] {
  const own = [guest.node]
  const isDead = cluster.nodes.get(guest.node)?.isOnline !== true
  if (!known?.constraints || known.ramMib === null || known.cpuMc === null || guest.lock !== null) return own
  // Pins the guest of a dead node, unless the HA manager will move it. No API call can.
  if (isDead && guest.ha?.wanted !== 'started') return own
  if (guest.ha?.state === 'error') return own
  const reach = getReachableNodes(known.constraints, cluster.storages, guest.node, cluster.nodes.keys())
  const allowed = rules.nodes.get(sidOf(guest.kind, guest.vmid)) ?? null
  if (reach === null || allowed === null) return reach ?? allowed ?? []
  const both = reach.filter((node) => allowed.includes(node))
  return both.length > 0 ? both : own
}

/** The HA manager's rules for guests. A group of guests has the name of its first rule. */
type HaRules = {
  /** The only allowed nodes of each guest (`vm:101`). */
  nodes: Map<string, string[]>
  together: Map<string, string>
  apart: Map<string, string>
}

const rule = z.object({
  rule: z.string(),
  type: z.string(),
  resources: z.string().default(''),
  nodes: z.string().default(''),
  strict: flag.default(false),
  affinity: z.string().optional(),
  disable: flag.default(false),
})
const group = z.object({ group: z.string(), nodes: z.string().default(''), restricted: flag.default(false) })

/**
 * Reads the rules of Proxmox VE 9, or the groups of version 8, which has no rules. `groupOf` maps
 * each guest to its group. Rules that share a guest count as one rule. This is exact for guests
 * that are kept together, and stricter than the manager for guests that are kept apart. No plan
 * therefore contains a move that the manager refuses.
 */
async function readRules(api: ProxmoxApi, groupOf: Map<string, string>, signal?: AbortSignal): Promise<HaRules> {
  try {
    const all = await api.get(['cluster', 'ha', 'rules'], z.array(rule), { signal })
    const rules = all.filter((one) => !one.disable)
    const affinity = (kind: string) =>
      rules.filter((one) => one.type === 'resource-affinity' && one.affinity === kind).map(namesIn)
    return {
      nodes: new Map(
        rules
          .filter((one) => one.type === 'node-affinity' && one.strict)
          .flatMap((one) => list(one.resources).map((sid) => [sid, nodesIn(one.nodes)] as const)),
      ),
      together: joined(affinity('positive')),
      apart: joined(affinity('negative')),
    }
  } catch (error) {
    // Treats "Method 'GET /cluster/ha/rules' not implemented" as Proxmox VE 8.
    if (!(error instanceof PlatformError) || error.status !== 501) throw error
  }
  const groups = await api.get(['cluster', 'ha', 'groups'], z.array(group), { signal })
  const restricted = new Map(groups.filter((one) => one.restricted).map((one) => [one.group, nodesIn(one.nodes)]))
  const nodes = new Map<string, string[]>()
  for (const [sid, name] of groupOf) {
    const only = restricted.get(name)
    if (only) nodes.set(sid, only)
  }
  return { nodes, together: new Map(), apart: new Map() }
}

function namesIn(one: z.infer<typeof rule>): { name: string; members: string[] } {
  return { name: one.rule, members: list(one.resources) }
}

/**
 * Reads nodes from `pve1:2,pve2`: names with priorities. Drops the priorities, because they are a
 * preference and not a limit.
 */
function nodesIn(text: string): string[] {
  return list(text).map((node) => node.split(':')[0] ?? '')
}

function list(text: string): string[] {
  return text.split(/[,;\s]+/).filter((part) => part !== '')
}

function joined(rules: { name: string; members: string[] }[]): Map<string, string> {
  const nameOf = new Map<string, string>()
  for (const { name, members } of rules) {
    const met = new Set(members.map((member) => nameOf.get(member)).filter((known) => known !== undefined))
    const [first = name] = met
    for (const [member, known] of nameOf) if (met.has(known)) nameOf.set(member, first)
    for (const member of members) nameOf.set(member, first)
  }
  return nameOf
}

export type ProxmoxOptions = ProxmoxApiOptions & {
  journal: PlatformJournal
  /** The name of each node's rack, by node. */
  racks?: Record<string, string>
}

/**
 * Presents a Proxmox VE cluster as a platform. The cluster's nodes are hosts, and its virtual
 * machines and containers are VMs. Proxmox has no shards, nodes or tenants in Nightshift's sense.
 * docs/reference/proxmox.md lists what is read, what is sent, and what is impossible.
 */
export function createProxmoxClient(options: ProxmoxOptions): PlatformClient {
  const { journal, racks = {} } = options
  const api = createProxmoxApi(options)
  const ports: Ports = { api, journal }
  const readFacts = guestFacts(api)
  let hasPrivileges = false

  return {
    sizeNote,
    async inventory(signal) {
      if (!hasPrivileges) await requirePrivileges(api, signal)
      hasPrivileges = true
      const cluster = await readCluster(api, signal)
      if (!cluster.isQuorate) {
        throw new PlatformError('GET /cluster/status', 503, 'no quorum, so it is unknown which nodes are dead')
      }
      const groupOf = new Map<string, string>()
      for (const { ha } of cluster.guests.values()) if (ha?.group) groupOf.set(ha.sid, ha.group)
      const rules = await readRules(api, groupOf, signal)
      return inventoryOf(cluster, rules, await readFacts(cluster, signal), racks)
    },
    async converge() {
      throw new PlatformError('converge', 422, 'Proxmox VE has no shards')
    },
    wouldConverge: async () => null,
    startVm: (vmId, host, key) => runOnce(ports, key, { vmId, target: host }, () => planStart(api, vmId, host)),
    powerVm: (vmId, action, host, key) =>
      runOnce(ports, key, { vmId, target: host, action }, () => planPower(api, vmId, action, host)),
    migrateVm: (vmId, { from, to }, key) =>
      runOnce(ports, key, { vmId, target: to }, () => planMigration(api, vmId, from, to)),
    async effect(key) {
      const row = await journal.get(key)
      return row && (await readOutcome(api, journal, row))
    },
  }
}

type Ports = { api: ProxmoxApi; journal: PlatformJournal }

/** Sends an operation only once, however often its key is used. */
async function runOnce(
  ports: Ports,
  key: string,
  wanted: Pick<PlatformEffect, 'vmId' | 'target'> & { action?: 'stop' | 'restart' },
  plan: () => Promise<PlatformOperation>,
): Promise<EffectAnswer> {
  const { api, journal } = ports
  const earlier = await journal.get(key)
  if (earlier) {
    const isSame = wanted.action ? earlier.action === wanted.action : !['stop', 'restart'].includes(earlier.action)
    if (isSame && earlier.vmId === wanted.vmId && earlier.target === wanted.target)
      return await readOutcome(api, journal, earlier)
    throw new PlatformError('a write', 422, 'this key was used for another write')
  }
  const operation = await plan().catch((error): PlatformOperation => {
    if (!(error instanceof PlatformError) && !(error instanceof HttpError)) throw error
    return { ending: { status: 'failed', detail: `nothing was sent: ${error.message}` } }
  })
  if ('ending' in operation) return { key, ...operation.ending, result: {}, changed: [] }
  // Records the write call before it is sent. From now on only Proxmox's state proves the outcome.
  if (await journal.begin({ key, ...operation.entry })) {
    if (operation.send) await send(ports, key, operation.send)
  }
  return await waitForOutcome(ports, key)
}

async function send(
  { api, journal }: Ports,
  key: string,
  { path, form }: { path: ApiPath; form: Form },
): Promise<void> {
  try {
    await journal.noteTask(key, await api.post(path, form, upid))
  } catch (error) {
    // Leaves the outcome open without a response. A refusal comes before an operation begins.
    if (isSilence(error) || error instanceof HttpError) return
    if (!(error instanceof PlatformError)) throw error
    // Looks for a task, because the refusal may be for a repetition: the proxy between nodes
    // repeats a request after a lost connection.
    const row = await journal.get(key)
    if (error.status === 500 && row && (await taskFromList(api, journal, row).catch(() => null))) return
    await journal.end(key, { status: 'failed', detail: `Proxmox VE: ${error.detail || error.message}` })
  }
}

/** Reads the outcome again while a request with a lost response may still have an effect. */
async function waitForOutcome({ api, journal }: Ports, key: string): Promise<EffectAnswer> {
  for (;;) {
    const row = await journal.get(key)
    if (!row) throw new PlatformError('a write', 500, 'its row is gone')
    try {
      return await readOutcome(api, journal, row)
    } catch (error) {
      const isFault = error instanceof PlatformError || error instanceof HttpError
      if (!isFault || !error.retryable || row.ageSeconds > lostAfterSeconds + 10) throw error
      await sleep(1_000)
    }
  }
}

/**
 * Checks the token's privileges. Proxmox lists only objects that a token may see, so a full host
 * would look empty.
 */
async function requirePrivileges(api: ProxmoxApi, signal: AbortSignal | undefined): Promise<void> {
  const schema = z.record(z.string(), z.record(z.string(), z.unknown()))
  const granted = (await api.get(['access', 'permissions'], schema, { query: { path: '/' }, signal }))['/'] ?? {}
  const missing = ['VM.Audit', 'Sys.Audit', 'Datastore.Audit'].filter((name) => !Number(granted[name] ?? 0))
  if (missing.length === 0) return
  throw new PlatformError(
    'GET /access/permissions',
    403,
    `the token lacks ${missing.join(', ')} on /, with propagation`,
  )
}
