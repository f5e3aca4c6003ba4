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

/** The device mesh, as this process uses it. */
export type Mesh = {
  keys: MeshKeys
  /** PEM of the authorities that sign devices' certificates; by default the system's. */
  ca?: string
  /**
   * PEM of the authority that signed this API's certificate. Agents that connect to the API pin
   * this authority.
   */
  authority?: string
  /** Reads a variable of this process' environment, for devices whose address is in a variable. */
  variable(name: string): string | undefined
  /** Agents that connect to this process; absent if the process takes no connections. */
  connections?: DeviceConnections
}

/** The device that acts on a resource, and the way from that device to the resource. */
export type Executor = {
  resource: Executable
  device: DeviceRow
  /** The way into the guest through its host's agent; null if the resource has its own agent. */
  through: Guests | null
}

/** The request of a tool call to a device: to the resource's own agent, or to its host's. */
export type MappedCall = {
  spec: MeshSpec
  input: Record<string, unknown>
  capability: Capability
  args: Record<string, unknown>
}

/**
 * Thrown if no device can carry out the call. The message has the reason and what a person may do.
 */
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

/** Returns the device with this name, even if the device cannot be called. */
export async function requireDevice({ db }: Pick<EffectDeps, 'db'>, id: string): Promise<DeviceRow> {
  const found = await deviceById(db, id)
  if (!found) throw refuseMissing(`device ${id}`)
  return found
}

/**
 * Finds the device that acts for a name: the own agent of a node, host or VM, or the host's agent
 * for a VM without an agent. A name that is not in the inventory may be the name of a device.
 * Refuses with the reason if no device can be called.
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
  const why = host === null ? '' : `, and the agent of its host ${host} cannot reach into it`
  throw new CapabilityUnavailable(`capability unavailable: ${kind} ${id} has no agent${why}. ${remedy(id)}`)
}

function requireUsable(executor: Executor): Executor {
  const refusal = whyUnusable(executor.device)
  if (refusal) throw refusal
  return executor
}

/** Returns why a device cannot be called now, as far as rows show; null if it can. */
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
  const detail = `The manifest of ${id} expired at ${manifest.expires_at}: its agent must fetch a new one.`
  return new CapabilityUnavailable(detail, 'manifest_invalid')
}

function remedy(id: string): string {
  return `A person may enrol an agent: nightshift mesh enroll ${id}`
}

/**
 * Returns the way to a device: to an agent that listens, or over the connection that the agent
 * made.
 */
export function wayTo({ ca, variable, connections }: Mesh, { id, url, urlEnv }: DeviceRow): DeviceWay {
  const address = (urlEnv && variable(urlEnv)) || url
  if (address !== null) return overHttp({ id, url: address, ...(ca !== undefined && { ca }) })
  if (connections) return connections.way(id)
  const nowhere = async () => {
    throw new HttpError('connect', `${id} calls out, and this process accepts no connections`, false)
  }
  return { id, async ready() {}, ...askingOver(id, nowhere) }
}

/** Reads arguments by the tool's schema. A refusal names the field. */
export function readInput(spec: MeshSpec, args: unknown): Record<string, unknown> {
  const parsed = spec.input.safeParse(args)
  if (parsed.success) return parsed.data
  const detail = `${spec.name}: ${nameFaults(parsed.error, { whole: 'args', max: 1 })}`
  throw new EffectRefused('invalid', 'invalid_arguments', detail)
}

/**
 * Builds the request of a call to the executor's device. Refuses a call that the device does not
 * offer.
 */
export function mapCall(
  { device, resource, through }: Executor,
  spec: MeshSpec,
  input: Record<string, unknown>,
): MappedCall {
  const own = { spec, input, capability: spec.capability, args: spec.toArgs(input) }
  if (through === null) return requireOffered(device.id, own, missingPrerequisite(spec, device))
  const asked = spec.throughHost?.(resource.id, through, input) ?? 'this tool needs an agent on the guest itself'
  if (typeof asked === 'string') {
    const what = `${resource.kind} ${resource.id} has no agent of its own, and through the agent of its host (${device.id})`
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

/** Milliseconds within which a read must be answered, before the caller gives up. */
const readDeadlineMs = 20_000

/** Returns the milliseconds that a device has for a call; a write has the device's whole limit. */
export function getDeadlineMs({ device }: Executor, isRead: boolean): number {
  const ownMs = device.timeoutSeconds * 1000
  return isRead ? Math.min(ownMs, readDeadlineMs) : ownMs
}

/**
 * Makes a new key for a read that belongs to a write. The key need not be the same each time,
 * because reads may repeat.
 */
export function buildReadKey(base: string, what: string): string {
  return `${base}:${what}:${randomUUID()}`
}

/** Reads the mesh's keys. Throws MeshKeyError for a file without keys. Null without a mesh. */
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

/**
 * Stores which keys are in use. Manifests name these keys, and from now on the previous key is no
 * longer valid.
 */
export async function noteKeys(deps: Pick<EffectDeps, 'db'>, mesh: Mesh): Promise<void> {
  await deps.db.transaction().execute((trx) => storeKeys(trx, mesh))
}

async function storeKeys(trx: Trx, { keys }: Mesh): Promise<void> {
  const toPublic = (key: SigningKey) => ({ id: key.id, publicKey: publicHalf(key) })
  await noteMeshKeys(trx, toPublic(keys.signing), keys.next ? toPublic(keys.next) : null)
}

/**
 * Issues and stores a new manifest for a device, from the device's settings and the current keys. A
 * connected agent gets the manifest sent; an agent that listens fetches the manifest.
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

/**
 * Whether the device needs a new manifest: it has no manifest, the manifest is past half its life,
 * or the manifest lacks the current keys.
 */
async function isManifestStale(db: Db | Trx, device: DeviceRow): Promise<boolean> {
  const { manifest } = device
  if (!manifest) return true
  const [issued, expires] = [Date.parse(manifest.issued_at), Date.parse(manifest.expires_at)]
  if (Date.now() > (issued + expires) / 2) return true
  const known = (await meshKeys(db)).map(({ id, notAfter }) => `${id} ${notAfter === null}`)
  const named = manifest.keys.map(({ id, not_after }) => `${id} ${not_after === null}`)
  return known.length !== named.length || known.some((each) => !named.includes(each))
}

/** Returns the manifest for a device: the stored one, or a new one if the stored one is stale. */
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
