import { HttpError } from '../../clients/http.ts'
import { type DeviceRow, noteHealth } from '../../db/devices.ts'
import type { MeshHealth } from '../../domain/mesh.ts'
import { InvalidDeviceResponseError as DeviceLiesError, readHealth } from '../../mesh/client.ts'
import type { ApiDeps } from '../deps.ts'
import { addressOf, requireMesh } from './executor.ts'

/** Asks a device how it is and keeps what it said; null where it said nothing, and why is kept. */
export async function askHealth(deps: ApiDeps, device: DeviceRow): Promise<MeshHealth | null> {
  try {
    const health = await readHealth(addressOf(requireMesh(deps), device))
    await noteHealth(deps.db, device.id, { health })
    return health
  } catch (error) {
    if (!(error instanceof HttpError) && !(error instanceof DeviceLiesError)) throw error
    await noteHealth(deps.db, device.id, { problem: error.message })
    return null
  }
}
