import { z } from '@hono/zod-openapi'
import { type DeviceRow, devicesOf } from '../../db/inventory/devices.ts'
import type { Executable } from '../../domain/device.ts'
import { meshMode } from '../../domain/mesh.ts'
import { whyUnusable } from '../../effects/devices/executor.ts'
import { knownCapability, toolsOf, toolsThrough } from '../../mesh/registry.ts'
import type { ApiDeps } from '../deps.ts'

/**
 * The device that executes calls for a node, host or VM, and its tools: the resource's own device,
 * or else its host's device. Null if no device can execute calls. `mode`: on a `sudo` device a
 * person has to approve each call, even a read.
 */
export const deviceField = {
  device: z.object({ id: z.string(), mode: meshMode, capabilities: z.array(knownCapability) }).nullable(),
}

type Offered = z.infer<typeof deviceField.device>

export const offeredExample: Offered = {
  id: 'node-osl-2',
  mode: 'user',
  capabilities: ['shell.exec', 'fs.read', 'proc.list'],
}

type Row = { id: string; host?: string | null }

/** Adds to each resource its device with its tools. Uses only rows and queries no device. */
export async function withDevices<R extends Row>(
  { db, mesh }: Pick<ApiDeps, 'db' | 'mesh'>,
  kind: Executable['kind'],
  rows: readonly R[],
): Promise<(R & { device: Offered })[]> {
  if (!mesh) return rows.map((row) => ({ ...row, device: null }))
  const byId = async (of: Executable['kind'], ids: string[]) =>
    new Map((await devicesOf(db, of, ids)).map((device) => [device.resource.id, device]))
  const own = await byId(
    kind,
    rows.map(({ id }) => id),
  )
  const around = await byId('host', kind === 'vm' ? [...new Set(rows.flatMap(({ host }) => host ?? []))] : [])
  return rows.map((row) => ({ ...row, device: offeredBy(own.get(row.id), around.get(row.host ?? '')) }))
}

export async function withDevice<R extends Row>(
  deps: Pick<ApiDeps, 'db' | 'mesh'>,
  kind: Executable['kind'],
  row: R,
): Promise<R & { device: Offered }> {
  const [device] = (await withDevices(deps, kind, [row])).map((each) => each.device)
  return { ...row, device: device ?? null }
}

/**
 * Chooses the device of a call: the resource's own device before its host's device, even if the own
 * device cannot be used.
 */
function offeredBy(own: DeviceRow | undefined, around: DeviceRow | undefined): Offered {
  const device = own ?? around
  if (!device || whyUnusable(device)) return null
  if (own) return { id: own.id, mode: own.mode, capabilities: toolsOf(own).map((spec) => spec.capability) }
  const tools = device.guests ? toolsThrough(device, device.guests) : []
  return tools.length === 0
    ? null
    : { id: device.id, mode: device.mode, capabilities: tools.map((spec) => spec.capability) }
}
