import { z } from '@hono/zod-openapi'
import { type HostRow, hostById, hosts, vmById, vms } from '../db/platform.ts'
import { health, hostState, vmState } from '../domain/platform.ts'
import type { ApiDeps } from './deps.ts'
import { endpoint, type Router } from './http/endpoint.ts'
import { pageOf } from './http/paging.ts'
import { notFound } from './http/problem.ts'
import { deviceField, withDevice, withDevices } from './mesh/offered.ts'
import { healthOfHost } from './nodes.ts'
import { resourceParams, staleFlag, withHealth } from './resource.ts'

const tag = 'platform'
const host = hostState.extend({ status: health, ...staleFlag, ...deviceField })
const vm = vmState.extend(deviceField)
const hostExample: z.input<typeof host> = {
  id: 'host-osl-2',
  region: 'osl',
  rack: 'rack-1',
  state: 'dead',
  ramMib: 16_384,
  cpuMc: 8_000,
  status: 'critical',
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

export function hostRoutes(router: Router, deps: ApiDeps): void {
  const { db, state } = deps
  const shown = (row: HostRow, fresh: { stale: boolean }) =>
    withHealth({ ...row, status: healthOfHost[row.state] }, fresh)

  endpoint(router, deps, {
    method: 'get',
    path: '/hosts',
    permission: 'read',
    tag,
    summary: 'All hosts',
    answer: pageOf(host),
    example: { items: [hostExample], nextCursor: null },
    async run() {
      const fresh = await state.refresh()
      const items = (await hosts(db)).map((row) => shown(row, fresh))
      return { items: await withDevices(deps, 'host', items), nextCursor: null }
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/hosts/{id}',
    permission: 'read',
    tag,
    summary: 'A host',
    params: resourceParams,
    answer: host,
    example: hostExample,
    problems: [404],
    async run({ params: { id } }) {
      const fresh = await state.refresh()
      const row = await hostById(db, id)
      if (!row) throw notFound(`host ${id}`)
      return await withDevice(deps, 'host', shown(row, fresh))
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/vms',
    permission: 'read',
    tag,
    summary: 'All VMs and where they run',
    description: 'Whether a VM runs has no word for "unknown": 503 while the platform cannot be reached.',
    query: z.object({ host: z.string().max(100).optional() }),
    answer: pageOf(vm),
    example: { items: [vmExample], nextCursor: null },
    async run({ query }) {
      await state.requireCurrent()
      const all = await vms(db)
      const asked = query.host ? all.filter(({ host }) => host === query.host) : all
      return { items: await withDevices(deps, 'vm', asked), nextCursor: null }
    },
  })

  endpoint(router, deps, {
    method: 'get',
    path: '/vms/{id}',
    permission: 'read',
    tag,
    summary: 'A VM, the host it is on, whether it runs, and what a device can be asked for it',
    params: resourceParams,
    answer: vm,
    example: vmExample,
    problems: [404],
    async run({ params: { id } }) {
      await state.requireCurrent()
      const row = await vmById(db, id)
      if (!row) throw notFound(`VM ${id}`)
      return await withDevice(deps, 'vm', row)
    },
  })
}
