import type { Capability, Manifest } from '../../domain/mesh.ts'
import { diskCapabilities } from './capabilities/disk.ts'
import { dockerOn } from './capabilities/docker.ts'
import { fsCapabilities } from './capabilities/fs.ts'
import { gitHistory } from './capabilities/git-history.ts'
import { gitRevert } from './capabilities/git-revert.ts'
import { gitCapabilities } from './capabilities/git-transfer.ts'
import { logReadBy } from './capabilities/log.ts'
import { pkgWith } from './capabilities/pkg.ts'
import { procCapabilities } from './capabilities/proc.ts'
import { shellCapabilities } from './capabilities/shell.ts'
import { servicesBy } from './capabilities/unit.ts'
import type { DeviceCapability } from './capability.ts'

/** Where this machine differs from the standard places. */
export type MachineOverrides = {
  /**
   * Where the container engine listens, as DOCKER_HOST writes it; without it where every engine
   * does.
   */
  dockerHost?: string
  /**
   * Given to each call of apt (`-o`, `Dir=/elsewhere`): its packages are then not the machine's,
   * and an agent that is not root may install.
   */
  aptOptions?: readonly string[]
  /** The program that speaks to the service manager with its first words (`systemctl --user`); without it the system's own. */
  systemctl?: readonly string[]
  /** The same of its journal. */
  journalctl?: readonly string[]
}

/** Everything that an agent can do. What the device lacks for it is found out at the start. */
export const capabilitiesOn = ({
  dockerHost,
  aptOptions = [],
  systemctl,
  journalctl,
}: MachineOverrides): readonly DeviceCapability[] => [
  ...shellCapabilities,
  ...fsCapabilities,
  ...diskCapabilities,
  ...gitCapabilities,
  ...gitHistory,
  gitRevert,
  ...procCapabilities,
  ...Object.values(pkgWith(aptOptions)),
  ...Object.values(dockerOn(dockerHost)),
  ...servicesBy(systemctl),
  logReadBy(journalctl),
]

export const allCapabilities = capabilitiesOn({})

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
    const missing = await one.missingPrerequisite(manifest).catch((error) => `it could not be asked: ${error.message}`)
    if (missing === null) available.set(name, one)
    else unavailable[name] = missing
  }
  return { available, unavailable }
}
