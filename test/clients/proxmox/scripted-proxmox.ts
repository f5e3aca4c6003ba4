import { afterEach, beforeEach } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import type { PlatformClient } from '../../../clients/platform.ts'
import { createProxmoxClient } from '../../../clients/proxmox/client.ts'
import type { PlatformJournal } from '../../../clients/proxmox/outcome.ts'
import type { EffectAnswer, PlatformEffectRow } from '../../../domain/platform.ts'
import { answerJson, type LocalServer, type Seen, startLocalServer } from '../../support/local-server.ts'

export const token = 'nightshift@pve!core=11112222-3333-4444-5555-666677778888'
const owner = 'nightshift@pve!core'

type ScriptedGuest = {
  vmid: number
  name?: string
  type: 'qemu' | 'lxc'
  node: string
  status: 'running' | 'stopped' | 'unknown'
  maxmem?: number
  maxcpu?: number
  /** Seconds since its present run began. */
  uptime?: number
  template?: number
  lock?: string
  tags?: string
  config: Record<string, unknown>
}
type ScriptedTask = { upid: string; node: string; vmid: number; end: string | null; log: string[]; isGone: boolean }
type Service = { node: string; state: string; running?: number; target?: string; cmd?: string[] }

/** What becomes of the next task: when it is looked at for the n-th time it is over. */
export type Course = { looks: number; end: string; log?: string[] }

export type ScriptedProxmox = {
  server: LocalServer
  release: 8 | 9
  clusterName: string | null
  isQuorate: boolean
  nodes: Record<
    string,
    { online: boolean; silent?: boolean; noStatistics?: boolean; maintenance?: boolean; manager?: string }
  >
  guests: ScriptedGuest[]
  storages: { storage: string; shared: number; nodes: string[] }[]
  ha: {
    resources: { sid: string; type: string; state?: string; group?: string }[]
    rules: Record<string, unknown>[]
    groups: Record<string, unknown>[]
    services: Record<string, Service>
  }
  privileges: string[]
  tasks: ScriptedTask[]
  course: Course
  /** What the precheck of a migration says, besides what follows from the guests. */
  precheck: Record<string, unknown>
  /**
   * What a migration's POST comes to: answered, begun without an answer (ever), lost before it
   * began, or a no.
   */
  answer: 'told' | 'lost_after' | 'held' | 'lost_before' | { status: number; message: string; hasBegun?: boolean }
  /** Every write that was truly begun: method, path and form. */
  begun: { path: string; form: Record<string, string> }[]
  onTask(task: ScriptedTask, guest: ScriptedGuest, target: string): void
  /**
   * What a task that ended well leaves of a stop or a reboot; the HA manager does its part later.
   */
  onPower(task: ScriptedTask, guest: ScriptedGuest): void
  startTask(type: string, node: string, vmid: number, user?: string): ScriptedTask
  guest(vmid: number): ScriptedGuest
  close(): Promise<void>
}

const gib = 1_073_741_824

export function aGuest(vmid: number, node: string, change: Partial<ScriptedGuest> = {}): ScriptedGuest {
  return {
    vmid,
    type: 'qemu',
    node,
    status: 'running',
    maxmem: 2 * gib,
    maxcpu: 2,
    config: {
      scsi0: `ceph:vm-${vmid}-disk-0,size=32G`,
      ide2: 'none,media=cdrom',
      digest: 'a1',
      net0: 'virtio=BC:24:11',
    },
    ...change,
  }
}

/**
 * Three nodes, shared and local storage, and Proxmox VE's API over them as its sources answer it.
 */
export async function startScriptedProxmox(): Promise<ScriptedProxmox> {
  const server = await startLocalServer()
  let count = 0
  const state: ScriptedProxmox = {
    server,
    release: 9,
    clusterName: 'oslo',
    isQuorate: true,
    nodes: { pve1: { online: true }, pve2: { online: true }, pve3: { online: true } },
    guests: [aGuest(101, 'pve1'), aGuest(102, 'pve2')],
    storages: [
      { storage: 'ceph', shared: 1, nodes: ['pve1', 'pve2', 'pve3'] },
      { storage: 'nfs', shared: 1, nodes: ['pve1', 'pve2'] },
      { storage: 'local-lvm', shared: 0, nodes: ['pve1', 'pve2', 'pve3'] },
    ],
    ha: { resources: [], rules: [], groups: [], services: {} },
    privileges: ['VM.Audit', 'VM.Migrate', 'VM.PowerMgmt', 'Sys.Audit', 'Datastore.Audit'],
    tasks: [],
    course: { looks: 2, end: 'OK' },
    precheck: {},
    answer: 'told',
    begun: [],
    onTask(task, guest, target) {
      if (task.end === 'OK' || task.end?.startsWith('WARNINGS'))
        Object.assign(guest, { node: target, status: 'running' })
    },
    onPower(task, guest) {
      if (/shutdown$/.test(task.upid.split(':')[5] ?? '')) Object.assign(guest, { status: 'stopped', uptime: 0 })
      else if (/reboot$/.test(task.upid.split(':')[5] ?? '')) Object.assign(guest, { uptime: 3 })
    },
    startTask(type, node, vmid, user = owner) {
      count += 1
      const hex = (number: number) => number.toString(16).toUpperCase().padStart(8, '0')
      const upid = `UPID:${node}:${hex(4_000 + count)}:${hex(90_000 + count)}:${hex(1_795_000_000 + count)}:${type}:${vmid}:${user}:`
      const task: ScriptedTask = { upid, node, vmid, end: null, log: [], isGone: false }
      state.tasks.push(task)
      return task
    },
    guest: (vmid) => state.guests.find((one) => one.vmid === vmid) as ScriptedGuest,
    close: () => server.close(),
  }
  const looks = new Map<string, () => void>()

  server.play((response, seen, request) => {
    const data = (value: unknown) => answerJson(200, { data: value })(response, seen, request)
    const no = (status: number, message: string, errors?: Record<string, string>) => {
      // The reason is in the status line; newer releases repeat it in the body.
      response.writeHead(status, message, { 'content-type': 'application/json;charset=UTF-8' })
      response.end(
        JSON.stringify({
          data: null,
          ...(state.release === 9 && { message: `${message}\n` }),
          ...(errors && { errors }),
        }),
      )
    }
    const url = new URL(seen.path, 'http://pve')
    const path = url.pathname.split('/').slice(1).map(decodeURIComponent)
    if (path[0] !== 'api2' || path[1] !== 'json') return no(404, 'not found')
    if (seen.headers.authorization !== `PVEAPIToken=${token}`) return no(401, 'invalid token value!')
    const [, , first, second, ...rest] = path
    if (first === 'access') {
      return data({ '/': Object.fromEntries(state.privileges.map((name) => [name, 1])) })
    }
    if (first === 'cluster') return cluster([second ?? '', ...rest].join('/'))
    if (first !== 'nodes' || !second) return no(501, `Method '${seen.method} ${url.pathname}' not implemented`)
    const node = state.nodes[second]
    if (!node) return no(500, `hostname lookup '${second}' failed - failed to get address info for: ${second}`)
    if (!node.online) return no(595, 'No route to host')
    if (node.silent) return no(596, 'Connection timed out')
    if (rest[0] === 'tasks') return tasks(second, rest[1], rest[2], url.searchParams)
    const guest = state.guests.find((one) => String(one.vmid) === rest[1] && one.type === rest[0])
    if (!guest) return no(501, 'not implemented')
    if (guest.node !== second) {
      return no(500, `Configuration file 'nodes/${second}/qemu-server/${guest.vmid}.conf' does not exist`)
    }
    return aboutGuest(guest, `${seen.method} ${rest.slice(2).join('/')}`, new URLSearchParams(seen.body))

    function cluster(what: string) {
      if (what === 'resources') return data(resources(state))
      if (what === 'status') return data(members(state))
      if (what === 'ha/resources') return data(state.ha.resources)
      if (what === 'ha/status/manager_status') return data(manager(state))
      if (what === 'ha/rules' && state.release === 9) return data(state.ha.rules)
      if (what === 'ha/groups') {
        return state.release === 8
          ? data(state.ha.groups)
          : no(500, 'cannot index groups: ha groups have been migrated to rules')
      }
      return no(501, `Method '${seen.method} /cluster/${what}' not implemented`)
    }

    function tasks(name: string, upid: string | undefined, what: string | undefined, query: URLSearchParams) {
      if (upid === undefined) {
        const found = state.tasks.filter(
          (task) => !task.isGone && task.node === name && String(task.vmid) === query.get('vmid'),
        )
        return data(
          found.toReversed().map((task) => ({
            upid: task.upid,
            node: task.node,
            pid: 1,
            pstart: 1,
            id: String(task.vmid),
            user: 'nightshift@pve',
            tokenid: 'core',
            ...(task.end === null ? { status: 'RUNNING' } : { status: task.end, endtime: 1_795_000_100 }),
          })),
        )
      }
      const task = state.tasks.find((one) => one.upid === upid)
      if (!task || task.isGone) return no(400, 'Parameter verification failed.', { upid: 'no such task' })
      if (what === 'log') return data(task.log.map((t, n) => ({ n: n + 1, t })))
      looks.get(upid)?.()
      return data({
        upid,
        node: name,
        id: String(task.vmid),
        user: 'nightshift@pve',
        starttime: 1_795_000_000,
        ...(task.end === null ? { status: 'running' } : { status: 'stopped', exitstatus: task.end }),
      })
    }

    function aboutGuest(guest: ScriptedGuest, what: string, form: URLSearchParams) {
      if (what === 'GET config') return data(guest.config)
      if (what === 'GET status/current') {
        return data({
          status: guest.status,
          vmid: guest.vmid,
          maxmem: guest.maxmem ?? gib,
          cpus: guest.maxcpu ?? 1,
          uptime: guest.uptime,
        })
      }
      if (what === 'GET migrate') {
        if (guest.type === 'lxc' && state.release === 8) return no(501, 'not implemented')
        return data({ running: 1, local_disks: [], local_resources: [], not_allowed_nodes: {}, ...state.precheck })
      }
      const isMigration = what === 'POST migrate'
      const power = /^POST status\/(shutdown|reboot)$/.exec(what)?.[1]
      if (!isMigration && power === undefined && what !== 'POST status/start') return no(501, 'not implemented')
      if (power !== undefined && guest.status !== 'running') return no(500, `VM ${guest.vmid} not running`)
      if (state.answer === 'lost_before') return response.destroy()
      const refusal = typeof state.answer === 'object' ? state.answer : null
      if (refusal && !refusal.hasBegun) return no(refusal.status, refusal.message)
      state.begun.push({ path: url.pathname, form: Object.fromEntries(form) })
      const isHa = state.ha.resources.some(({ sid }) => sid.endsWith(`:${guest.vmid}`))
      const [verb, own] = isMigration
        ? ['migrate', guest.type === 'qemu' ? 'qmigrate' : 'vzmigrate']
        : ['start', guest.type === 'qemu' ? 'qmstart' : 'vzstart']
      // A reboot is the guest's own matter, HA-managed or not.
      const ofPower = power && `${guest.type === 'qemu' ? 'qm' : 'vz'}${power}`
      const type = power === 'reboot' || !isHa ? (ofPower ?? own) : power ? 'hastop' : `ha${verb}`
      const task = state.startTask(type as string, guest.node, guest.vmid)
      let left = state.course.looks
      const { end, log = [] } = state.course
      looks.set(task.upid, () => {
        left -= 1
        if (left > 0 || task.end !== null) return
        Object.assign(task, { end, log })
        if (power === undefined) state.onTask(task, guest, form.get('target') ?? guest.node)
        else if (end === 'OK') state.onPower(task, guest)
      })
      if (refusal) return no(refusal.status, refusal.message)
      if (state.answer === 'held') return
      return state.answer === 'lost_after' ? response.destroy() : data(task.upid)
    }
  })
  return state
}

function resources(state: ScriptedProxmox): unknown[] {
  const isStale = (name: string) => state.nodes[name]?.noStatistics
  return [
    ...state.guests.map(({ config: _, ...guest }) =>
      isStale(guest.node)
        ? { id: `${guest.type}/${guest.vmid}`, type: guest.type, vmid: guest.vmid, node: guest.node, status: 'unknown' }
        : { id: `${guest.type}/${guest.vmid}`, name: `guest-${guest.vmid}`, ...guest },
    ),
    ...Object.entries(state.nodes).map(([node, { online, noStatistics }]) => ({
      id: `node/${node}`,
      type: 'node',
      node,
      status: online ? 'online' : 'offline',
      ...(!noStatistics && { maxmem: 64 * gib, maxcpu: 16 }),
    })),
    ...state.storages.flatMap(({ storage, shared, nodes }) =>
      nodes.map((node) => ({
        id: `storage/${node}/${storage}`,
        type: 'storage',
        storage,
        node,
        shared,
        status: 'available',
      })),
    ),
    { id: 'sdn/pve1/localnetwork', type: 'sdn', sdn: 'localnetwork', node: 'pve1', status: 'ok' },
  ]
}

function members(state: ScriptedProxmox): unknown[] {
  const nodes = Object.entries(state.nodes).map(([name, { online }], index) => ({
    type: 'node',
    id: `node/${name}`,
    name,
    nodeid: index + 1,
    ip: `10.9.0.${index + 1}`,
    local: index === 0 ? 1 : 0,
    online: online ? 1 : 0,
  }))
  if (state.clusterName === null) return nodes
  const quorate = state.isQuorate ? 1 : 0
  return [
    { type: 'cluster', id: 'cluster', name: state.clusterName, nodes: nodes.length, version: 3, quorate },
    ...nodes,
  ]
}

function manager(state: ScriptedProxmox): unknown {
  const nodeStatus = Object.entries(state.nodes).map(([name, { online, maintenance, manager }]) => [
    name,
    manager ?? (maintenance ? 'maintenance' : online ? 'online' : 'unknown'),
  ])
  return {
    manager_status: {
      master_node: 'pve1',
      timestamp: 1_795_000_000,
      node_status: Object.fromEntries(nodeStatus),
      service_status: state.ha.services,
    },
    quorum: { node: 'pve1', quorate: state.isQuorate ? '1' : '0' },
    lrm_status: { pve1: { mode: 'active', state: 'active', timestamp: 1_795_000_000, results: {} } },
  }
}

export function pathsSeen(seen: Seen[]): string[] {
  return seen.map(({ method, path }) => `${method} ${path.replace('/api2/json', '').replace(/\?.*/, '')}`)
}

/** A journal in memory whose clock the test moves. The one that survives is tested in test/db. */
export function memoryJournal() {
  const rows = new Map<string, PlatformEffectRow>()
  const journal: PlatformJournal & { rows: typeof rows; ageSeconds: number } = {
    rows,
    ageSeconds: 0,
    async get(key) {
      const row = rows.get(key)
      return row ? structuredClone({ ...row, ageSeconds: journal.ageSeconds }) : null
    },
    async begin(entry) {
      if (rows.has(entry.key)) return false
      rows.set(entry.key, { ...entry, task: null, ageSeconds: 0, ending: null })
      return true
    },
    async noteTask(key, task) {
      Object.assign(rows.get(key) as PlatformEffectRow, { task })
    },
    async end(key, ending) {
      const row = rows.get(key) as PlatformEffectRow
      row.ending ??= ending
    },
  }
  return journal
}

/**
 * The cluster of the test that runs, what is journalled of it, and a client of both: others for
 * every test.
 */
export let pve: ScriptedProxmox
export let journal: ReturnType<typeof memoryJournal>
export let client: PlatformClient

/** Gives every test of the file a cluster. */
export function useCluster(): void {
  beforeEach(async () => {
    pve = await startScriptedProxmox()
    journal = memoryJournal()
    client = anotherClient()
  })
  afterEach(async () => {
    await closeConnections()
    await pve.close()
  })
}

/** One that remembers nothing but what the journal holds, as after a restart. */
export function anotherClient(timeoutMs?: number): PlatformClient {
  return createProxmoxClient({
    urls: [pve.server.url],
    token,
    allow: 'loopback',
    journal,
    ...(timeoutMs && { timeoutMs }),
  })
}

export const move = { from: 'pve1', to: 'pve2' }

/** Asks for the migration that most tests are about. */
export const migrated = () => client.migrateVm('vm-101', move, 'k1')

/** Looks until it is over. */
export async function followed(answer: EffectAnswer): Promise<EffectAnswer> {
  let last: EffectAnswer | null = answer
  for (let look = 0; last?.status === 'running' && look < 20; look += 1) last = await client.effect(answer.key)
  if (!last) throw new Error('its key is not known')
  return last
}
