import { HttpError } from '../../clients/http.ts'
import { type PlatformClient, PlatformError } from '../../clients/platform.ts'
import type { EffectAnswer, Inventory } from '../../domain/platform.ts'

type ScriptedPlatform = PlatformClient & {
  inventoryState: Inventory
  /** Every write that was truly begun, by its key. */
  begun: string[]
  /** What each write comes to, by its key or the thing it is about; `done` when nothing is said. */
  script: Record<string, 'done' | 'failed' | 'lost_after' | 'lost_before' | 'refused'>
  down: boolean
}

/** A platform in memory that journals its keys, and can fail in every way that a network can. */
export function scriptedPlatform(): ScriptedPlatform {
  const journal = new Map<string, EffectAnswer>()
  const platform: ScriptedPlatform = {
    inventoryState: oslo(),
    begun: [],
    script: {},
    down: false,
    async inventory() {
      reach()
      return structuredClone(platform.inventoryState)
    },
    converge: async (id, key) =>
      write(id, key, () => {
        for (const node of platform.inventoryState.nodes) if (node.shard === id) Object.assign(node, nominal)
      }),
    async wouldConverge(id) {
      reach()
      const ill = platform.inventoryState.nodes.filter(({ shard }) => shard === id)
      return {
        nodes: ill.map(({ id, status }) => ({ id, changes: status === 'nominal' ? [] : ['restart its process'] })),
      }
    },
    startVm: async (vm, host, key) => write(vm, key, () => move(vm, host)),
    powerVm: async (vm, action, _host, key) => write(vm, key, () => power(vm, action === 'restart')),
    migrateVm: async (vm, { to }, key) => write(vm, key, () => move(vm, to)),
    async effect(key) {
      reach()
      return journal.get(key) ?? null
    },
  }
  const nominal = { status: 'nominal', reason: null }

  function reach() {
    if (platform.down) throw new HttpError('connect', 'GET http://platform: no connection', true)
  }
  function move(vm: string, host: string) {
    for (const each of platform.inventoryState.vms) if (each.id === vm) Object.assign(each, { host, running: true })
  }
  let starts = 0
  function power(vm: string, running: boolean) {
    starts += 1
    const startedAt = running ? new Date(1_795_000_000_000 + starts * 1_000).toISOString() : null
    for (const each of platform.inventoryState.vms) if (each.id === vm) Object.assign(each, { running, startedAt })
  }
  function write(about: string, key: string, act: () => void): EffectAnswer {
    reach()
    const known = journal.get(key)
    if (known) return known
    const how = platform.script[key] ?? platform.script[about] ?? 'done'
    if (how === 'refused') throw new PlatformError('POST', 422, `${about} cannot be written`)
    if (how === 'lost_before') throw new HttpError('timeout', 'POST http://platform took too long', true)
    platform.begun.push(key)
    const failed = how === 'failed'
    if (!failed) act()
    const answer: EffectAnswer = {
      key,
      status: failed ? 'failed' : 'done',
      detail: failed ? `${about} did not start` : `${about} is done`,
      result: {},
      changed: failed ? null : [`${about} was changed`],
    }
    journal.set(key, answer)
    if (how === 'lost_after') throw new HttpError('timeout', 'POST http://platform took too long', true)
    return answer
  }
  return platform
}

function oslo(): Inventory {
  const node = (id: string, role: 'primary' | 'replica', status: 'nominal' | 'degraded') => ({
    id,
    shard: 'db-osl-1',
    region: 'osl',
    role,
    hostname: id,
    ip: '127.0.0.1',
    status,
    reason: status === 'nominal' ? null : 'replica is 42 s behind',
    replicationLagSeconds: role === 'replica' ? 42 : null,
    diskUsedBytes: 1,
    diskQuotaBytes: 2,
    diskByDirectory: { data: 1 },
  })
  const host = (id: string, rack: string, state: 'live' | 'draining' | 'dead' = 'live') => ({
    id,
    region: 'osl',
    rack,
    state,
    ramMib: 8_192,
    cpuMc: 4_000,
    ...(state === 'dead' && { fenced: { by: 'its power switch', at: null } }),
  })
  const vm = (id: string, on: string, haGroup: string | null, running = true) => ({
    id,
    host: on,
    running,
    ramMib: 1_024,
    cpuMc: 500,
    haGroup,
    tenant: 'tenant-1',
    priority: 0,
    pinnedTo: [],
    forbiddenHosts: [],
    affinityGroup: null,
  })
  return {
    regions: [{ id: 'osl' }],
    shards: [{ id: 'db-osl-1', region: 'osl', role: 'database', status: 'degraded', config: { wal_keep: 4 } }],
    nodes: [node('node-osl-1', 'primary', 'nominal'), node('node-osl-2', 'replica', 'degraded')],
    tenants: [{ id: 'tenant-1', name: 'Fjord Bank', shard: 'db-osl-1', status: 'degraded' }],
    hosts: [
      host('host-osl-1', 'r1'),
      host('host-osl-2', 'r2', 'dead'),
      host('host-osl-3', 'r3'),
      host('host-osl-4', 'r4', 'draining'),
    ],
    vms: [vm('vm-1', 'host-osl-1', null), vm('vm-2', 'host-osl-2', null, false), vm('vm-3', 'host-osl-2', null, false)],
    links: [
      { a: 'host-osl-1', b: 'host-osl-3', cost: 10, up: true },
      { a: 'host-osl-1', b: 'host-osl-2', cost: 1, up: true },
      { a: 'host-osl-3', b: 'host-osl-4', cost: 1, up: true },
    ],
  }
}
