import { z } from '@hono/zod-openapi'
import {
  type HostRow,
  type HostUse,
  hostById,
  hosts,
  readHostUses,
  vmById,
  vms,
  vmsOnHost,
} from '../../db/inventory/platform-rows.ts'
import { type Health, health, hostState, vmState } from '../../domain/platform.ts'
import { withHealth } from '../../effects/platform-state.ts'
import { pageOf } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound } from '../http/problem.ts'
import { deviceField, withDevice, withDevices } from './offered.ts'
import { resourceParams, staleFlag } from './resources.ts'

export const tag = 'platform'
/**
 * The VMs of the host and the capacity that they use now. Null while the platform cannot be
 * reached, because nobody knows then which VMs run.
 */
const use = z
  .object({
    vms: z.number().int(),
    running: z.number().int(),
    ramMib: z.number().int(),
    cpuMc: z.number().int(),
    freeRamMib: z.number().int(),
    freeCpuMc: z.number().int(),
  })
  .nullable()
const host = hostState.extend({ status: health, use, ...staleFlag, ...deviceField })
const vmOnHost = vmState
  .pick({ id: true, ramMib: true, cpuMc: true, haGroup: true, priority: true, tenant: true })
  .extend({ running: z.boolean().nullable() })
const vm = vmState.extend(deviceField)
const hostExample: z.input<typeof host> = {
  id: 'host-osl-2',
  region: 'osl',
  rack: 'rack-1',
  state: 'dead',
  ramMib: 16_384,
  cpuMc: 8_000,
  status: 'critical',
  use: { vms: 1, running: 0, ramMib: 0, cpuMc: 0, freeRamMib: 16_384, freeCpuMc: 8_000 },
  device: null,
}
const vmExample: z.input<typeof vm> = {
  id: 'vm-osl-3',
  host: 'host-osl-2',
  running: false,
  ramMib: 2_048,
  cpuMc: 1_000,
  haGroup: 'ha-web',
  tenant: 'tenant-1',
  device: { id: 'host-osl-2', mode: 'user', capabilities: ['shell.exec', 'shell.eval'] },
}

const vmOnHostExample: z.input<typeof vmOnHost> = {
  id: 'vm-osl-3',
  running: false,
  ramMib: 2_048,
  cpuMc: 1_000,
  haGroup: 'ha-web',
  priority: 100,
  tenant: 'tenant-1',
}

const noUse: HostUse = { vms: 0, running: 0, ramMib: 0, cpuMc: 0 }

/** Describes a host with the health of its state, and its free capacity. */
function describeHost(row: HostRow, taken: HostUse = noUse, fresh: { stale: boolean }) {
  const left = { freeRamMib: row.ramMib - taken.ramMib, freeCpuMc: row.cpuMc - taken.cpuMc }
  const now = fresh.stale ? null : { ...taken, ...left }
  return withHealth({ ...row, status: healthOfHost[row.state], use: now }, fresh)
}

/** Refuses an unknown rack or region. An empty list would mean that it has no hosts. */
function requireKnown(all: readonly HostRow[], field: 'rack' | 'region', name: string | undefined): void {
  const known = [...new Set(all.map((each) => each[field]))].sort()
  if (name === undefined || known.includes(name)) return
  throw notFound(
    `host in ${field} ${name}: ${known.length === 0 ? 'no host is known' : `there are ${known.slice(0, 20).join(', ')}`}`,
  )
}

const listHostsEndpoint = endpoint({
  method: 'get',
  path: '/hosts',
  permission: 'read',
  tag,
  summary: 'All hosts, or those of a rack or region: state, capacity, free capacity',
  description: '`brief=true` leaves out the capabilities of their devices.',
  query: z.object({
    rack: z.string().max(100).optional(),
    region: z.string().max(100).optional(),
    brief: z.enum(['true', 'false']).default('false'),
  }),
  answer: pageOf(host.partial({ device: true })),
  example: { items: [hostExample], nextCursor: null },
  problems: [404],
  async run({ scope, query: { rack, region, brief } }, deps) {
    const fresh = await deps.state.refresh()
    const all = await hosts(scope)
    requireKnown(all, 'rack', rack)
    requireKnown(all, 'region', region)
    const uses = await readHostUses(scope)
    const items = all
      .filter((each) => (rack ?? each.rack) === each.rack && (region ?? each.region) === each.region)
      .map((row) => describeHost(row, uses.get(row.id), fresh))
    return { items: brief === 'true' ? items : await withDevices(deps, 'host', items), nextCursor: null }
  },
})

const getHostEndpoint = endpoint({
  method: 'get',
  path: '/hosts/{id}',
  permission: 'read',
  tag,
  summary: 'A host: state, rack, capacity, free capacity, VMs, capabilities of its device',
  params: resourceParams,
  answer: host.extend({ vms: z.array(vmOnHost) }),
  example: { ...hostExample, vms: [vmOnHostExample] },
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    const fresh = await deps.state.refresh()
    const row = await hostById(scope, id)
    if (!row) throw notFound(`host ${id}`)
    const taken = (await readHostUses(scope)).get(id)
    const on = (await vmsOnHost(scope, id)).map(({ id, running, ramMib, cpuMc, haGroup, priority, tenant }) => ({
      id,
      running: fresh.stale ? null : running,
      ramMib,
      cpuMc,
      haGroup,
      priority,
      tenant,
    }))
    return await withDevice(deps, 'host', { ...describeHost(row, taken, fresh), vms: on })
  },
})

const listVmsEndpoint = endpoint({
  method: 'get',
  path: '/vms',
  permission: 'read',
  tag,
  summary: 'All VMs and where they run',
  description: '503 while the platform cannot be reached, because it is then unknown whether a VM runs.',
  query: z.object({ host: z.string().max(100).optional() }),
  answer: pageOf(vm),
  example: { items: [vmExample], nextCursor: null },
  async run({ scope, query }, deps) {
    await deps.state.requireCurrent()
    const all = await vms(scope)
    const asked = query.host ? all.filter(({ host }) => host === query.host) : all
    return { items: await withDevices(deps, 'vm', asked), nextCursor: null }
  },
})

const getVmEndpoint = endpoint({
  method: 'get',
  path: '/vms/{id}',
  permission: 'read',
  tag,
  summary: 'A VM: its host, whether it runs, and the capabilities of its device',
  params: resourceParams,
  answer: vm,
  example: vmExample,
  problems: [404],
  async run({ scope, params: { id } }, deps) {
    await deps.state.requireCurrent()
    const row = await vmById(scope, id)
    if (!row) throw notFound(`VM ${id}`)
    return await withDevice(deps, 'vm', row)
  },
})

export const healthOfHost = { live: 'nominal', draining: 'degraded', dead: 'critical' } satisfies Record<string, Health>

export const hostRoutes = [listHostsEndpoint, getHostEndpoint, listVmsEndpoint, getVmEndpoint]
