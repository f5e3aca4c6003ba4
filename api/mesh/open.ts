import { deviceUrlVariable, type MeshSettings } from '../../config.ts'
import { usableDevices } from '../../db/devices.ts'
import { noteMeshKeys } from '../../db/mesh-keys.ts'
import { publicHalf, readSigningKey } from '../../mesh/keys.ts'
import type { ApiDeps } from '../deps.ts'
import type { Mesh } from './executor.ts'
import { askHealth } from './health.ts'

/** Reads the keys; throws MeshKeyError where one is none. Null: this API has no mesh. */
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

/** Writes down which keys are in use: manifests name them, and the one before ends now. */
export async function noteKeys(deps: Pick<ApiDeps, 'db'>, { keys }: Mesh): Promise<void> {
  const named = (key: Mesh['keys']['root']) => ({ id: key.id, publicKey: publicHalf(key) })
  await deps.db
    .transaction()
    .execute((trx) => noteMeshKeys(trx, named(keys.signing), keys.next ? named(keys.next) : null))
}

const healthEveryMs = 30_000

/** Notes the keys, and asks the devices how they are from time to time. Answers what ends it. */
export function watchMesh(deps: ApiDeps): () => void {
  const { mesh, log, db } = deps
  if (!mesh) return () => {}
  let noted = false
  let asking = false
  async function look(opened: Mesh) {
    if (!noted) await noteKeys(deps, opened)
    noted = true
    for (const device of await usableDevices(db)) await askHealth(deps, device)
  }
  const tick = () => {
    if (asking) return
    asking = true
    look(mesh)
      .catch((error) => log.error({ err: error }, 'the devices could not be looked at'))
      .finally(() => {
        asking = false
      })
  }
  tick()
  const timer = setInterval(tick, healthEveryMs)
  return () => clearInterval(timer)
}
