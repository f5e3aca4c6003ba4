import type { Capability, Manifest } from '../../domain/mesh.ts'
import type { DeviceCapability } from './capability.ts'

export type Available = {
  available: ReadonlyMap<Capability, DeviceCapability>
  /** What the device lacks, with the reason in words. */
  unavailable: Partial<Record<string, string>>
}

/** Asks each capability that the manifest lists whether this device has what it takes. */
export async function availableOf(all: readonly DeviceCapability[], manifest: Manifest): Promise<Available> {
  const available = new Map<Capability, DeviceCapability>()
  const unavailable: Partial<Record<string, string>> = {}
  for (const one of all) {
    const name = one.capability
    if (manifest.capabilities.length > 0 && !manifest.capabilities.includes(name)) continue
    const lacking = await one.lacks(manifest).catch((error) => `it could not be asked: ${error.message}`)
    if (lacking === null) available.set(name, one)
    else unavailable[name] = lacking
  }
  return { available, unavailable }
}
