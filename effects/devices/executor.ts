import { randomUUID } from 'node:crypto'
import { HttpError } from '../../clients/http.ts'
import { deviceUrlVariable, type MeshSettings } from '../../config/settings.ts'
import type { Db, Trx } from '../../db/connect.ts'
import { tellOfDevice } from '../../db/inventory/device-connections.ts'
import { type DeviceRow, deviceById, deviceOf, executableNamed, setManifest } from '../../db/inventory/devices.ts'
import { meshKeys, noteMeshKeys } from '../../db/inventory/mesh-keys.ts'
import { recordAudit } from '../../db/log/audit.ts'
import type { Executable, Guests } from '../../domain/device.ts'
import type { Capability, Manifest } from '../../domain/mesh.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import { askingOver, type DeviceWay } from '../../mesh/exchange.ts'
import { overHttp } from '../../mesh/over-http.ts'
import { type MeshSpec, missingPrerequisite, specOf } from '../../mesh/registry.ts'
import { issueManifest, type MeshKeys, publicHalf, readSigningKey, type SigningKey } from '../../mesh/sign.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'
import type { DeviceConnections } from './connections.ts'

/** The mesh as this process holds it. */
export type Mesh = {
  keys: MeshKeys
  /** PEM of the authorities that sign devices' certificates; the system's when absent. */
  ca?: string
  /** PEM of the authority behind the certificate of this API; agents that call out pin it. */
  authority?: string
  /** A variable of this process's environment, for devices whose address is there. */
  variable(name: string): string | undefined
  /** Agents that call out; absent where this process takes no connections. */
  connections?: DeviceConnections
}

/** The device that acts on a resource, and how it gets there. */
export type Executor = {
  resource: Executable
  device: DeviceRow
  /** Null: the resource's own agent. Otherwise its host's, which reaches into the guest so. */
  through: Guests | null
}

/** A tool call's request to a device: to the resource's agent, or its host's. */
export type MappedCall = {
  spec: MeshSpec
  input: Record<string, unknown>
  capability: Capability
  args: Record<string, unknown>
}

/** No device can do it; the message says why and what a person may do. */
class CapabilityUnavailable extends EffectRefused {
  constructor(detail: string, code = 'capability_unavailable') {
    super('device_failed', code, detail)
  }
}

export function requireMesh({ mesh }: Pick<EffectDeps, 'mesh'>): Mesh {
  if (mesh) return mesh
  const detail = 'No keys of the mesh are configured (MESH_ROOT_KEY_FILE, MESH_SIGNING_KEY_FILE).'
  throw new EffectRefused('invalid', 'NO_MESH', detail)
}

/** The device of that name, whether it can be called or not. */
export async function requireDevice({ db }: Pick<EffectDeps, 'db'>, id: string): Promise<DeviceRow> {
  const found = await deviceById(db, id)
  if (!found) throw refuseMissing(`device ${id}`)
  return found
}

/**
 * The device of a name: a node, host or VM by its own agent, a VM else by its host's. A name
 * outside of the inventory may be a device's. Refused with the reason where none can be called.
 */
export async function requireExecutor(db: Db, id: string): Promise<Executor> {
  const named = await executableNamed(db, id)
  if (!named) {
    const device = await deviceById(db, id)
    if (!device) throw refuseMissing(`node, host, VM or device ${id}`)
    return requireUsable({ resource: device.resource, device, through: null })
  }
  const { kind, host } = named
  const own = await deviceOf(db, named)
  if (own) return requireUsable({ resource: { kind, id }, device: own, through: null })
  const around = host === null ? null : await deviceOf(db, { kind: 'host', id: host })
  if (around?.guests) return requireUsable({ resource: { kind, id }, device: around, through: around.guests })
  const why = host === null ? '' : `, nor does the one of its host ${host} reach into it`
  throw new CapabilityUnavailable(`capability unavailable: ${kind} ${id} has no agent${why}. ${remedy(id)}`)
}

function requireUsable(executor: Executor): Executor {
  const refusal = whyUnusable(executor.device)
  if (refusal) throw refusal
  return executor
}

/** Why a device cannot be called now, as far as rows tell; null when it can. */
export function whyUnusable({ id, enabled, enrolledAt, revokedAt, manifest }: DeviceRow): EffectRefused | null {
  if (revokedAt) {
    const detail = `capability unavailable: device ${id} was revoked at ${revokedAt}.`
    return new CapabilityUnavailable(detail, 'device_revoked')
  }
  if (!enabled) {
    return new CapabilityUnavailable(`capability unavailable: device ${id} is switched off.`, 'device_disabled')
  }
  if (!enrolledAt || !manifest) {
    const detail = `capability unavailable: device ${id} has not enrolled yet.`
    return new CapabilityUnavailable(detail, 'device_not_enrolled')
  }
  if (Date.parse(manifest.expires_at) > Date.now()) return null
  const detail = `The manifest of ${id} expired at ${manifest.expires_at}: it has to fetch a new one.`
  return new CapabilityUnavailable(detail, 'manifest_invalid')
}

function remedy(id: string): string {
  return `A person may enrol an agent on it: nightshift mesh enroll ${id}`
}

/** The way to a device: to where its agent listens, or over the connection that it made. */
export function wayTo({ ca, variable, connections }: Mesh, { id, url, urlEnv }: DeviceRow): DeviceWay {
  const address = (urlEnv && variable(urlEnv)) || url
  if (address !== null) return overHttp({ id, url: address, ...(ca !== undefined && { ca }) })
  if (connections) return connections.way(id)
  const nowhere = async () => {
    throw new HttpError('connect', `${id} calls out, and this process takes no connections`, false)
  }
  return { id, async ready() {}, ...askingOver(id, nowhere) }
}

/** Reads arguments by the tool's own schema; the refusal names the field. */
export function readInput(spec: MeshSpec, args: unknown): Record<string, unknown> {
  const parsed = spec.input.safeParse(args)
  if (parsed.success) return parsed.data
  const detail = `${spec.name}: ${nameFaults(parsed.error, { whole: 'args', max: 1 })}`
  throw new EffectRefused('invalid', 'invalid_arguments', detail)
}

/** A call's question to the executor's device. Refused with the reason where it is not offered. */
export function mapCall(
  { device, resource, through }: Executor,
  spec: MeshSpec,
  input: Record<string, unknown>,
): MappedCall {
  const own = { spec, input, capability: spec.capability, args: spec.toArgs(input) }
  if (through === null) return requireOffered(device.id, own, missingPrerequisite(spec, device))
  const asked = spec.throughHost?.(resource.id, through, input) ?? 'that takes an agent on the guest itself'
  if (typeof asked === 'string') {
    const what = `${resource.kind} ${resource.id} has no agent of its own, and through the one of its host (${device.id})`
    throw new CapabilityUnavailable(
      `capability unavailable: ${what} ${spec.name} does not work: ${asked}. ${remedy(resource.id)}`,
    )
  }
  const lacks = missingPrerequisite(spec, device) ?? missingPrerequisite(specOf(asked.capability), device)
  return requireOffered(device.id, { ...own, ...asked }, lacks)
}

function requireOffered(device: string, mapped: MappedCall, lacks: string | null): MappedCall {
  if (lacks === null) return mapped
  throw new CapabilityUnavailable(`capability unavailable: ${mapped.spec.name} on ${device}: ${lacks}.`)
}

/** Reads are answered before the caller gives up. */
const readDeadlineMs = 20_000

/** How long a device has for a call: a write all of the device's own time. */
export function getDeadlineMs({ device }: Executor, isRead: boolean): number {
  const ownMs = device.timeoutSeconds * 1000
  return isRead ? Math.min(ownMs, readDeadlineMs) : ownMs
}

/** A new key for a read that belongs to a write: reads may repeat. */
export function buildReadKey(base: string, what: string): string {
  return `${base}:${what}:${randomUUID()}`
}

/** Reads the keys; throws MeshKeyError for a file that holds none. Null: this API has no mesh. */
export function openMesh(settings: MeshSettings | null): Mesh | null {
  if (!settings) return null
  const { rootKeyFile, signingKeyFile, nextKeyFile, ca, authority } = settings
  return {
    keys: {
      root: readSigningKey(rootKeyFile),
      signing: readSigningKey(signingKeyFile),
      next: nextKeyFile === null ? null : readSigningKey(nextKeyFile),
    },
    ...(ca !== undefined && { ca }),
    ...(authority !== undefined && { authority }),
    variable: deviceUrlVariable,
  }
}

/** Stores which keys are in use: manifests name them, and the use of the previous key ends now. */
export async function noteKeys(deps: Pick<EffectDeps, 'db'>, mesh: Mesh): Promise<void> {
  await deps.db.transaction().execute((trx) => storeKeys(trx, mesh))
}

async function storeKeys(trx: Trx, { keys }: Mesh): Promise<void> {
  const toPublic = (key: SigningKey) => ({ id: key.id, publicKey: publicHalf(key) })
  await noteMeshKeys(trx, toPublic(keys.signing), keys.next ? toPublic(keys.next) : null)
}

/**
 * Issues and stores a device's new manifest, by its settings and today's keys. An agent that calls
 * out is sent it; one that listens fetches it.
 */
export async function renewManifest(trx: Trx, mesh: Mesh, device: DeviceRow): Promise<Manifest> {
  const { keys } = mesh
  const { id, mode, terms, manifestDays: days } = device
  if (!(await meshKeys(trx)).some((key) => key.id === keys.signing.id)) await storeKeys(trx, mesh)
  const manifest = issueManifest({ device: id, mode, terms, days, keys: await meshKeys(trx) }, keys.root)
  await setManifest(trx, manifest)
  await tellOfDevice(trx, id)
  return manifest
}

/** Whether the device needs a manifest: none yet, past half its life, or without today's keys. */
async function isManifestStale(db: Db | Trx, device: DeviceRow): Promise<boolean> {
  const { manifest } = device
  if (!manifest) return true
  const [issued, expires] = [Date.parse(manifest.issued_at), Date.parse(manifest.expires_at)]
  if (Date.now() > (issued + expires) / 2) return true
  const known = (await meshKeys(db)).map(({ id, notAfter }) => `${id} ${notAfter === null}`)
  const named = manifest.keys.map(({ id, not_after }) => `${id} ${not_after === null}`)
  return known.length !== named.length || known.some((each) => !named.includes(each))
}

/** The manifest that a device that asks gets: the one it has, or a new one where that is stale. */
export async function currentManifest(
  { db }: Pick<EffectDeps, 'db'>,
  mesh: Mesh,
  device: DeviceRow,
): Promise<Manifest | null> {
  if (!(await isManifestStale(db, device))) return device.manifest
  return await db.transaction().execute(async (trx) => {
    const manifest = await renewManifest(trx, mesh, device)
    const entry = { who: device.id, what: 'device.manifest_renewed', subject: device.id } as const
    await recordAudit(trx, { ...entry, detail: `Manifest ${manifest.id}` })
    return manifest
  })
}
