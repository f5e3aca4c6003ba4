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

/** Settings that replace the usual addresses and commands of this machine. */
export type MachineOverrides = {
  /** The container engine's address in the form of DOCKER_HOST. Absent for the usual address. */
  dockerHost?: string
  /**
   * Options for each call of apt (`-o`, `Dir=/elsewhere`). With options the packages need not be
   * the machine's own, so that an agent that is not root may install them.
   */
  aptOptions?: readonly string[]
  /** The command for the service manager (`systemctl --user`). Absent for the system's manager. */
  systemctl?: readonly string[]
  /** The command for the journal of this service manager. */
  journalctl?: readonly string[]
}

/**
 * Returns all capabilities that an agent has. When an agent reads its manifest, it finds which of
 * them the device lacks.
 */
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
  /** The missing capabilities of the device, each with the reason. */
  unavailable: Partial<Record<string, string>>
}

/** Checks each capability of the manifest on this device. */
async function availableOf(all: readonly DeviceCapability[], manifest: Manifest): Promise<Available> {
  const available = new Map<Capability, DeviceCapability>()
  const unavailable: Partial<Record<string, string>> = {}
  for (const one of all) {
    const name = one.capability
    if (manifest.capabilities.length > 0 && !manifest.capabilities.includes(name)) continue
    const missing = await one.missingPrerequisite(manifest).catch((error) => `the check failed: ${error.message}`)
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
  /** Paths that only the agent uses, hidden from every read without approval. */
  hidden: readonly string[]
  manifestFile: string
  rootKey: KeyObject
  /** The name under which this device was enrolled. Null before the first manifest. */
  device: string | null
  version: string
  journal: Journal
  nonces: Nonces
  confinement: KeptConfinement
  nowMs(): number
} & MachineOverrides

/** A response with the error code that decides its HTTP status. */
export type Reply = { answer: CapabilityAnswer; code: MeshErrorCode | null }

/** The agent's state in memory. Everything that must survive a restart is in the journal. */
export type AgentState = {
  world: AgentWorld
  startedMs: number
  /** Running operations by request id; `runningByKey` has them by idempotency key. */
  running: Map<string, RunningOperation>
  runningByKey: Map<string, RunningOperation>
  recentRefusals: RecentRefusals
  capabilities: Available
  /**
   * The number of reads of the manifest that have begun. The result of a read is dropped if a later
   * read has begun.
   */
  readings: number
  /** The valid manifest. Null while the agent refuses all requests; `refusing` has the reason. */
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
    refusing: 'the agent is starting',
    device: world.device,
  }
}

/**
 * Reads the manifest again. Running operations continue. Without a valid manifest, the agent
 * refuses every later request.
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
  // Changes all fields in one step: an earlier request is judged by the earlier manifest.
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

/** Returns the valid manifest. Null if the manifest is missing or expired. */
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

/** Records the nonce, so that a second request with this nonce is refused. */
export function rememberNonce({ world }: AgentState, request: { nonce: string; issued_at: string }): void {
  world.nonces.remember(request.nonce, Date.parse(request.issued_at), world.nowMs())
}

/** Refuses an unverified request. The journal does not record it. */
export function reject(
  { code, message }: Pick<Rejection, 'code' | 'message'>,
  request_id: string,
  device: string,
): Reply {
  return { answer: refusalOf({ request_id, device }, { code, message }, 'refused', null, null), code }
}

/** Refuses a request while there is no valid manifest. */
export function unavailable(agent: AgentState, requestId: string): Reply {
  const message = `This agent refuses every call: ${agent.refusing}.`
  return reject({ code: 'manifest_invalid', message }, requestId, agent.device ?? 'unknown')
}
