import type { Db, Trx } from '../../db/connect.ts'
import { type DeviceRow, setManifest } from '../../db/devices.ts'
import { meshKeys, noteMeshKeys } from '../../db/mesh-keys.ts'
import type { Manifest } from '../../domain/mesh.ts'
import { issueManifest } from '../../mesh/issue.ts'
import { publicHalf } from '../../mesh/keys.ts'
import type { SigningKey } from '../../mesh/sign.ts'
import type { Mesh } from './executor.ts'

/** Makes and keeps a new manifest of a device, as it is set and as the keys are now. The device has to fetch it. */
export async function renewManifest(trx: Trx, { keys }: Mesh, device: DeviceRow): Promise<Manifest> {
  const { id, mode, terms, manifestDays: days } = device
  const named = (key: SigningKey) => ({ id: key.id, publicKey: publicHalf(key) })
  if (!(await meshKeys(trx)).some((key) => key.id === keys.signing.id)) {
    await noteMeshKeys(trx, named(keys.signing), keys.next ? named(keys.next) : null)
  }
  const made = issueManifest({ device: id, mode, terms, days, keys: await meshKeys(trx) }, keys.root)
  await setManifest(trx, made)
  return made
}

/** Does what the device was given still say what it should: in its second half of life, with another end of a key, or with no key. */
export async function isStale(db: Db | Trx, device: DeviceRow): Promise<boolean> {
  const { manifest } = device
  if (!manifest) return true
  const [issued, expires] = [Date.parse(manifest.issued_at), Date.parse(manifest.expires_at)]
  if (Date.now() > (issued + expires) / 2) return true
  const known = (await meshKeys(db)).map(({ id, notAfter }) => `${id} ${notAfter === null}`)
  const named = manifest.keys.map(({ id, not_after }) => `${id} ${not_after === null}`)
  return known.length !== named.length || known.some((each) => !named.includes(each))
}
