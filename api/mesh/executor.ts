import type { Db } from '../../db/connect.ts'
import { type DeviceRow, deviceById, deviceOf, executableNamed } from '../../db/devices.ts'
import type { Executable, Guests } from '../../domain/device.ts'
import type { DeviceAddress } from '../../mesh/client.ts'
import type { MeshKeys } from '../../mesh/keys.ts'
import type { ApiDeps } from '../deps.ts'
import { notFound, Problem } from '../problem.ts'

/** The mesh as this process holds it. */
export type Mesh = {
  keys: MeshKeys
  /** PEM of the authorities that devices' certificates are believed by; the system's when absent. */
  ca?: string
  /** A variable of this process's environment, for devices whose address is there. */
  variable(name: string): string | undefined
}

/** Which device does what is asked of a resource, and how it gets there. */
export type Executor = {
  resource: Executable
  device: DeviceRow
  /** Null: the resource's own agent. Else its host's, which reaches into it. */
  through: Guests | null
}

/** What a person reads where nothing can be executed. */
export class Unavailable extends Problem {
  constructor(detail: string, code = 'capability_unavailable') {
    super(424, code, detail)
  }
}

/** What a person may do where nothing executes for a resource. */
export function remedy(id: string): string {
  return `A person may enrol an agent on it: nightshift mesh enroll ${id}`
}

export function requireMesh({ mesh }: Pick<ApiDeps, 'mesh'>): Mesh {
  if (mesh) return mesh
  throw new Problem(422, 'NO_MESH', 'No keys of the mesh are configured (MESH_ROOT_KEY_FILE, MESH_SIGNING_KEY_FILE).')
}

/** The device of that name, whether it can be asked or not; 404 when there is none. */
export async function requireDevice({ db }: Pick<ApiDeps, 'db'>, id: string): Promise<DeviceRow> {
  const found = await deviceById(db, id)
  if (!found) throw notFound(`device ${id}`)
  return found
}

/**
 * Who executes for what is named: a node, host or VM by its own agent, else a VM by that of its host; a name that the inventory does
 * not have may be a device's own. Throws Unavailable with the reason. The same name means the same thing to everybody.
 */
export async function requireExecutor(db: Db, id: string): Promise<Executor> {
  const named = await executableNamed(db, id)
  if (!named) {
    const device = await deviceById(db, id)
    if (!device) throw new Problem(404, 'NOT_FOUND', `There is no node, host, VM or device ${id}.`)
    return usable({ resource: device.resource, device, through: null })
  }
  const { kind, host } = named
  const own = await deviceOf(db, named)
  if (own) return usable({ resource: { kind, id }, device: own, through: null })
  const around = host === null ? null : await deviceOf(db, { kind: 'host', id: host })
  if (around?.guests) return usable({ resource: { kind, id }, device: around, through: around.guests })
  const why = host === null ? '' : `, nor does the one of its host ${host} reach into it`
  throw new Unavailable(`capability unavailable: ${kind} ${id} has no agent${why}. ${remedy(id)}`)
}

function usable(executor: Executor): Executor {
  const why = whyUnusable(executor.device)
  if (why) throw why
  return executor
}

/** Why a device can be asked nothing now, as far as rows tell; null when it can. */
export function whyUnusable({ id, enabled, enrolledAt, revokedAt, manifest }: DeviceRow): Unavailable | null {
  if (revokedAt)
    return new Unavailable(`capability unavailable: device ${id} was revoked at ${revokedAt}.`, 'device_revoked')
  if (!enabled) return new Unavailable(`capability unavailable: device ${id} is switched off.`, 'device_disabled')
  if (!enrolledAt || !manifest)
    return new Unavailable(`capability unavailable: device ${id} has not enrolled yet.`, 'device_not_enrolled')
  if (Date.parse(manifest.expires_at) > Date.now()) return null
  const detail = `The manifest of ${id} expired at ${manifest.expires_at}: it has to fetch a new one.`
  return new Unavailable(detail, 'manifest_invalid')
}

export function addressOf({ ca, variable }: Mesh, { id, url, urlEnv }: DeviceRow): DeviceAddress {
  return { id, url: (urlEnv && variable(urlEnv)) || url, ...(ca !== undefined && { ca }) }
}
