import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Capability, CapabilityAnswer, Manifest, MeshErrorCode } from '../../domain/mesh.ts'
import { refusalOf } from './act.ts'
import { diskCapabilities } from './capabilities/disk.ts'
import { dockerOn } from './capabilities/docker.ts'
import { fsCapabilities } from './capabilities/fs.ts'
import { gitHistory, gitRevert } from './capabilities/git.ts'
import { gitCapabilities } from './capabilities/git-transfer.ts'
import { logReadBy } from './capabilities/log.ts'
import { pkgWith } from './capabilities/pkg.ts'
import { procCapabilities } from './capabilities/proc.ts'
import { shellCapabilities } from './capabilities/shell.ts'
import { servicesBy } from './capabilities/unit.ts'
import type { DeviceCapability } from './capability.ts'
import type { KeptConfinement } from './confine.ts'
import type { Journal } from './journal.ts'
import { type TrustedManifest, trustManifest } from './manifest.ts'
import type { RunningOperation } from './operation.ts'
import { type RecentRefusals, recentRefusals } from './recent-refusals.ts'
import type { Nonces, Rejection, VerificationContext } from './verify-request.ts'

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
  /**
   * The program for the service manager, with its first words (`systemctl --user`); without it the
   * system's own.
   */
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

type Available = {
  available: ReadonlyMap<Capability, DeviceCapability>
  /** What the device lacks, with the reason in words. */
  unavailable: Partial<Record<string, string>>
}

/** Asks each capability that the manifest lists whether this device has what it takes. */
async function availableOf(all: readonly DeviceCapability[], manifest: Manifest): Promise<Available> {
  const available = new Map<Capability, DeviceCapability>()
  const unavailable: Partial<Record<string, string>> = {}
  for (const one of all) {
    const name = one.capability
    if (manifest.capabilities.length > 0 && !manifest.capabilities.includes(name)) continue
    const missing = await one.missingPrerequisite(manifest).catch((error) => `it could not be asked: ${error.message}`)
    if (missing !== null) unavailable[name] = missing
    else {
      available.set(name, one)
      Object.assign(unavailable, await one.lacks?.())
    }
  }
  return { available, unavailable }
}

export type AgentWorld = {
  state: string
  /** Paths that belong to the agent alone: no unasked command sees what is there. */
  hidden: readonly string[]
  manifestFile: string
  rootKey: KeyObject
  /** The name this device was enrolled under; null until a first manifest has named it. */
  device: string | null
  version: string
  journal: Journal
  nonces: Nonces
  confinement: KeptConfinement
  nowMs(): number
} & MachineOverrides

/** An answer with what a client of HTTP looks at first. */
export type Reply = { answer: CapabilityAnswer; code: MeshErrorCode | null }

/** What an agent knows while it runs; everything that has to survive it is in the journal. */
export type AgentState = {
  world: AgentWorld
  startedMs: number
  /** What runs, by the id of its request and by its idempotency key. */
  running: Map<string, RunningOperation>
  runningByKey: Map<string, RunningOperation>
  recentRefusals: RecentRefusals
  capabilities: Available
  /** Counts readings of the manifest: a reading that ends after a later one began is dropped. */
  readings: number
  /** Null while the agent refuses everything; `refusing` then says why. */
  trusted: TrustedManifest | null
  refusing: string | null
  device: string | null
}

export function newState(world: AgentWorld): AgentState {
  return {
    world,
    startedMs: world.nowMs(),
    running: new Map(),
    runningByKey: new Map(),
    recentRefusals: recentRefusals(),
    capabilities: { available: new Map(), unavailable: {} },
    readings: 0,
    trusted: null,
    refusing: 'it is starting',
    device: world.device,
  }
}

/**
 * Reads the manifest again. What runs goes on; without a valid manifest every later request is
 * refused.
 */
export async function reload(agent: AgentState): Promise<void> {
  agent.readings += 1
  const reading = agent.readings
  const read = readManifest(agent)
  if (!read.ok) {
    agent.trusted = null
    agent.refusing = read.reason
    return
  }
  const found = await availableOf(capabilitiesOn(agent.world), read.trusted.manifest)
  // All at once: a request that comes meanwhile is answered by the manifest before.
  if (reading !== agent.readings) return
  agent.device ??= read.trusted.manifest.device
  agent.capabilities = found
  agent.trusted = read.trusted
  agent.refusing = null
}

function readManifest({ world, device }: AgentState) {
  try {
    const text = readFileSync(world.manifestFile, 'utf8')
    return trustManifest(text, { rootKey: world.rootKey, device, nowMs: world.nowMs() })
  } catch (error) {
    return { ok: false as const, reason: `the manifest cannot be read: ${(error as Error).message}` }
  }
}

/** The manifest, unless it has expired since it was read. */
export function currentManifest(agent: AgentState): TrustedManifest | null {
  if (agent.trusted && agent.trusted.expiresMs <= agent.world.nowMs()) {
    agent.refusing = `the manifest expired at ${agent.trusted.manifest.expires_at}`
    agent.trusted = null
  }
  return agent.trusted
}

export function deviceName(agent: AgentState): string | null {
  return currentManifest(agent)?.manifest.device ?? null
}

export function verificationContext({ world }: AgentState, { manifest, keys }: TrustedManifest): VerificationContext {
  const { has, forgottenBeforeMs } = world.nonces
  return { device: manifest.device, keys, nowMs: world.nowMs(), hasSeen: has, forgottenBeforeMs }
}

/** The same nonce is refused from here on. */
export function rememberNonce({ world }: AgentState, request: { nonce: string; issued_at: string }): void {
  world.nonces.remember(request.nonce, Date.parse(request.issued_at), world.nowMs())
}

/** The answer to a request that was not verified; the journal does not learn of it. */
export function reject(
  { code, message }: Pick<Rejection, 'code' | 'message'>,
  request_id: string,
  device: string,
): Reply {
  return { answer: refusalOf({ request_id, device }, { code, message }, 'refused', null, null), code }
}

/** The answer to every request while there is no valid manifest. */
export function unavailable(agent: AgentState, requestId: string): Reply {
  const message = `This agent does nothing: ${agent.refusing}.`
  return reject({ code: 'manifest_invalid', message }, requestId, agent.device ?? 'unknown')
}
