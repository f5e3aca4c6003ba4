import { HttpError } from '../../clients/http.ts'
import { deviceUrlVariable, type MeshSettings } from '../../config.ts'
import type { Db, Trx } from '../../db/connect.ts'
import { meshKeys, noteMeshKeys } from '../../db/device-calls.ts'
import { type DeviceRow, noteHealth, setManifest, usableDevices } from '../../db/devices.ts'
import type { Manifest, MeshHealth } from '../../domain/mesh.ts'
import { InvalidDeviceResponseError, readHealth } from '../../mesh/client.ts'
import { issueManifest } from '../../mesh/issue.ts'
import { publicHalf, readSigningKey, type SigningKey } from '../../mesh/sign.ts'
import type { EffectDeps } from '../effect.ts'
import { getDeviceAddress, type Mesh, requireMesh } from './executor.ts'

/** Reads the keys; throws MeshKeyError for a file that holds none. Null: this API has no mesh. */
export function openMesh(settings: MeshSettings | null): Mesh | null {
  if (!settings) return null
  const { rootKeyFile, signingKeyFile, nextKeyFile, ca } = settings
  return {
    keys: {
      root: readSigningKey(rootKeyFile),
      signing: readSigningKey(signingKeyFile),
      next: nextKeyFile === null ? null : readSigningKey(nextKeyFile),
    },
    ...(ca !== undefined && { ca }),
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

/** Issues and stores a new manifest for a device, by its settings and today's keys. The device has to fetch it. */
export async function renewManifest(trx: Trx, mesh: Mesh, device: DeviceRow): Promise<Manifest> {
  const { keys } = mesh
  const { id, mode, terms, manifestDays: days } = device
  if (!(await meshKeys(trx)).some((key) => key.id === keys.signing.id)) await storeKeys(trx, mesh)
  const manifest = issueManifest({ device: id, mode, terms, days, keys: await meshKeys(trx) }, keys.root)
  await setManifest(trx, manifest)
  return manifest
}

/** Does the device need a new manifest: none yet, past half of its life, or with keys that are not today's? */
export async function isManifestStale(db: Db | Trx, device: DeviceRow): Promise<boolean> {
  const { manifest } = device
  if (!manifest) return true
  const [issued, expires] = [Date.parse(manifest.issued_at), Date.parse(manifest.expires_at)]
  if (Date.now() > (issued + expires) / 2) return true
  const known = (await meshKeys(db)).map(({ id, notAfter }) => `${id} ${notAfter === null}`)
  const named = manifest.keys.map(({ id, not_after }) => `${id} ${not_after === null}`)
  return known.length !== named.length || known.some((each) => !named.includes(each))
}

/** Asks a device for its health and stores the answer; null where it gave none, and the reason is stored. */
export async function askHealth(deps: EffectDeps, device: DeviceRow): Promise<MeshHealth | null> {
  try {
    const health = await readHealth(getDeviceAddress(requireMesh(deps), device))
    await noteHealth(deps.db, device.id, { health })
    return health
  } catch (error) {
    if (!(error instanceof HttpError) && !(error instanceof InvalidDeviceResponseError)) throw error
    await noteHealth(deps.db, device.id, { problem: error.message })
    return null
  }
}

const healthEveryMs = 30_000

/** Stores the keys, and asks all devices for their health every 30 s. Answers how to stop. */
export function watchMesh(deps: EffectDeps): () => void {
  const { mesh, log, db } = deps
  if (!mesh) return () => {}
  let hasStoredKeys = false
  let isAsking = false
  async function look(opened: Mesh) {
    if (!hasStoredKeys) await noteKeys(deps, opened)
    hasStoredKeys = true
    for (const device of await usableDevices(db)) await askHealth(deps, device)
  }
  const tick = () => {
    if (isAsking) return
    isAsking = true
    look(mesh)
      .catch((error) => log.error({ err: error }, 'the devices could not be looked at'))
      .finally(() => {
        isAsking = false
      })
  }
  tick()
  const timer = setInterval(tick, healthEveryMs)
  return () => clearInterval(timer)
}
