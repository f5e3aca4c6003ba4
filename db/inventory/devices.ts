import { randomBytes } from 'node:crypto'
import type { Device, DeviceTerms, Executable, Guests } from '../../domain/device.ts'
import { sha256 } from '../../domain/digest.ts'
import type { Manifest, MeshHealth, MeshMode } from '../../domain/mesh.ts'
import { cleanse } from '../../safety/redact.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import { forbidConnection } from './device-connections.ts'

/** A device with its last manifest. */
export type DeviceRow = Device & {
  manifest: Manifest | null
  /** The public key of an agent that connects to the API. */
  agentKey: string | null
}

type DeviceSettings = {
  url: string | null
  urlEnv: string | null
  mode: MeshMode
  guests: Guests | null
  timeoutSeconds: number
  toolsAllowed: string[]
  enabled: boolean
  terms: DeviceTerms
  manifestDays: number
}

function stored({ toolsAllowed, terms, ...rest }: DeviceSettings) {
  return { ...rest, toolsAllowed: JSON.stringify(toolsAllowed), terms: JSON.stringify(terms) }
}

/** Adds a device. The API sends no request to a device before it has enrolled. */
export async function addDevice(
  trx: Trx,
  { id, resource, ...settings }: DeviceSettings & { id: string; resource: Executable },
): Promise<void> {
  await trx
    .insertInto('device')
    .values({ id, resourceKind: resource.kind, resourceId: resource.id, ...stored(settings) })
    .execute()
}

export async function setDevice(trx: Trx, id: string, settings: DeviceSettings): Promise<void> {
  await trx.updateTable('device').set(stored(settings)).where('id', '=', id).execute()
}

export async function listDevices({ db }: Scope): Promise<DeviceRow[]> {
  const rows = await db.selectFrom('device').selectAll().orderBy('id').execute()
  return rows.map(toDevice)
}

/** Lists devices to which a request could be sent now, as far as rows show. */
export async function usableDevices(db: Db): Promise<DeviceRow[]> {
  const rows = await db
    .selectFrom('device')
    .selectAll()
    .where('enabled', '=', true)
    .where('revokedAt', 'is', null)
    .where('enrolledAt', 'is not', null)
    .where('manifestExpiresAt', '>', now)
    .orderBy('id')
    .execute()
  return rows.map(toDevice)
}

export async function deviceById(db: Db | Trx, id: string): Promise<DeviceRow | null> {
  const row = await db.selectFrom('device').selectAll().where('id', '=', id).executeTakeFirst()
  return row ? toDevice(row) : null
}

/** Locks the device's row until the transaction ends. */
export async function lockDevice(trx: Trx, id: string): Promise<DeviceRow | null> {
  const row = await trx.selectFrom('device').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
  return row ? toDevice(row) : null
}

/** Finds the device of a resource, unless it is revoked, whether or not it can be called now. */
export async function deviceOf(db: Db | Trx, { kind, id }: Executable): Promise<DeviceRow | null> {
  const row = await db
    .selectFrom('device')
    .selectAll()
    .where('resourceKind', '=', kind)
    .where('resourceId', '=', id)
    .where('revokedAt', 'is', null)
    .executeTakeFirst()
  return row ? toDevice(row) : null
}

/**
 * Lists devices of resources of a kind, except revoked devices, whether or not they can be called
 * now.
 */
export async function devicesOf(db: Db | Trx, kind: Executable['kind'], ids: string[]): Promise<DeviceRow[]> {
  if (ids.length === 0) return []
  const rows = await db
    .selectFrom('device')
    .selectAll()
    .where('resourceKind', '=', kind)
    .where('resourceId', 'in', ids)
    .where('revokedAt', 'is', null)
    .execute()
  return rows.map(toDevice)
}

/** Finds the resource with this id on which commands can run; for a VM, also its host. */
export async function executableNamed(
  db: Db | Trx,
  id: string,
): Promise<(Executable & { host: string | null }) | null> {
  for (const kind of ['node', 'host'] as const) {
    if (await db.selectFrom(kind).select('id').where('id', '=', id).executeTakeFirst()) return { kind, id, host: null }
  }
  const vm = await db.selectFrom('vm').select('host').where('id', '=', id).executeTakeFirst()
  return vm ? { kind: 'vm', id, host: vm.host } : null
}

export async function setManifest(trx: Trx, manifest: Manifest): Promise<void> {
  await trx
    .updateTable('device')
    .set({ manifest: JSON.stringify(manifest), manifestExpiresAt: manifest.expires_at })
    .where('id', '=', manifest.device)
    .execute()
}

/** Stores what a device reported about its health, or why it reported nothing. */
export async function noteHealth(
  db: Db | Trx,
  id: string,
  heard: { health: MeshHealth } | { problem: string },
): Promise<void> {
  const told =
    'health' in heard
      ? { health: JSON.stringify(cleanse(heard.health)), healthProblem: null }
      : { healthProblem: cleanse(heard.problem).slice(0, 500) }
  await db
    .updateTable('device')
    .set({ ...told, healthAt: now })
    .where('id', '=', id)
    .execute()
}

/** Revokes a device, and every token that could restore it. False if it was revoked before. */
export async function revokeDevice(trx: Trx, id: string): Promise<boolean> {
  const revoked = await trx
    .updateTable('device')
    .set({ revokedAt: now, refreshSha256: null, agentKey: null })
    .where('id', '=', id)
    .where('revokedAt', 'is', null)
    .returning('id')
    .executeTakeFirst()
  await trx
    .updateTable('deviceEnrolment')
    .set({ usedAt: now })
    .where('deviceId', '=', id)
    .where('usedAt', 'is', null)
    .execute()
  await forbidConnection(trx, id)
  return revoked !== undefined
}

/** Seconds for which an enrolment token is valid. Short, because a person enrols at once. */
export const enrolmentSeconds = 900

/** Finds the device with this refresh secret. A revoked device has no refresh secret. */
export async function deviceByRefresh(db: Db | Trx, refresh: string): Promise<DeviceRow | null> {
  const row = await db
    .selectFrom('device')
    .selectAll()
    .where('refreshSha256', '=', sha256(refresh))
    .where('revokedAt', 'is', null)
    .executeTakeFirst()
  return row ? toDevice(row) : null
}

/** Generates a secret with a prefix by which a leaked secret can be recognised and redacted. */
export function newSecret(): string {
  return `nst_${randomBytes(32).toString('base64url')}`
}

type StoredDevice = Omit<Device, 'resource' | 'manifestId'> & {
  agentKey: string | null
  resourceKind: Executable['kind']
  resourceId: string
  manifest: Manifest | null
  refreshSha256: string | null
}

function toDevice(row: unknown): DeviceRow {
  const { resourceKind: kind, resourceId: id, refreshSha256: _, ...rest } = row as StoredDevice
  return { ...rest, resource: { kind, id }, manifestId: rest.manifest?.id ?? null }
}
