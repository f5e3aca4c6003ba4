import {
  type CapabilityAnswer,
  type CapabilityRequest,
  type JournalPage,
  knownFields,
  type MeshErrorCode,
  type MeshHealth,
} from '../../domain/mesh.ts'
import { argsDigest } from '../sign.ts'
import { act, answerOf, refusalOf } from './act.ts'
import {
  type AgentState,
  type AgentWorld,
  allCapabilities,
  currentManifest,
  deviceName,
  newState,
  type Reply,
  reject,
  reload,
  rememberNonce,
  unavailable,
  verificationContext,
} from './agent-state.ts'
import { entriesAfter } from './chain.ts'
import { type GuardRuling, loadParsers, rule } from './guard.ts'
import type { Journal } from './journal.ts'
import type { KeyRecord } from './journal-index.ts'
import type { TrustedManifest } from './manifest.ts'
import { type DeviceOperation, operation } from './operation.ts'
import { noRequestId, requestIdIn, verifyCall, verifyCancel, verifyRead } from './verify-request.ts'

/** Verifies, judges and carries out a request, at most once per idempotency key. Never throws. */
async function call(agent: AgentState, body: Uint8Array): Promise<Reply> {
  const trusted = currentManifest(agent)
  if (!trusted) return unavailable(agent, requestIdIn(body))
  const verified = verifyCall(body, verificationContext(agent, trusted))
  if (!verified.ok) return reject(verified, requestIdIn(body), trusted.manifest.device)
  const { request } = verified
  // Records the nonce before any await, so that two copies of one request are not both verified.
  rememberNonce(agent, request)
  try {
    await loadParsers(request.args)
    return await perform(agent, request, trusted)
  } catch (error) {
    const message = `The agent failed: ${error instanceof Error ? error.message : String(error)}`
    return refuse(agent, request, { code: 'failed', message })
  }
}

function perform(agent: AgentState, request: CapabilityRequest, trusted: TrustedManifest): Reply | Promise<Reply> {
  const { journal } = agent.world
  const digest = digestOf(request)
  const running = agent.runningByKey.get(request.idempotency_key)
  const known = journal.index.ofKey(request.idempotency_key)
  const before = running?.digest ?? known?.digest
  if (before !== undefined && before !== digest)
    return refuse(agent, request, { code: 'idempotency_key_reused', message: 'This key was used for another call.' })
  if (running) return join(request, running)
  if (known?.state === 'done') return repeat(agent, request, known)
  if (known && known.effect === 'write') return refuse(agent, request, { code: 'indeterminate', message: interrupted })

  const ruling = ruleOn(agent, request, trusted)
  if (!ruling.ok) return refuse(agent, request, ruling)
  const obstacle = obstacleTo(agent, request, ruling.effect, trusted)
  if (obstacle) return refuse(agent, request, obstacle)
  return join(request, begin(agent, request, { ruling, digest, trusted }))
}

function ruleOn(agent: AgentState, request: CapabilityRequest, { manifest, keys }: TrustedManifest): GuardRuling {
  const { confinement, hidden, journal, nowMs } = agent.world
  return rule(request, {
    manifest,
    keys,
    available: agent.capabilities.available,
    unavailable: agent.capabilities.unavailable,
    sandbox: confinement.sandbox,
    lack: confinement.lack,
    hidden,
    names: request.names ?? [],
    nowMs: nowMs(),
    isUsedGrant: journal.index.isUsedGrant,
  })
}

type Obstacle = { code: MeshErrorCode; message: string }

/** Returns why an allowed request cannot begin now. Null for a request that can begin. */
function obstacleTo(
  { world, running, runningByKey }: AgentState,
  request: CapabilityRequest,
  effect: 'read' | 'write',
  { manifest }: TrustedManifest,
): Obstacle | null {
  const lost = world.journal.lost()
  if (lost !== null && effect === 'write') {
    const message = `The journal was lost (${lost}), so it is unknown which calls were already done.`
    return { code: 'indeterminate', message }
  }
  if (running.has(request.request_id))
    return { code: 'malformed', message: 'This request id is already running with another key.' }
  if (runningByKey.size >= manifest.limits.concurrent)
    return { code: 'busy', message: `${runningByKey.size} operations are running already.` }
  return null
}

type Permitted = { ruling: GuardRuling & { ok: true }; digest: string; trusted: TrustedManifest }

/** Starts the operation, and keeps it by request id and idempotency key until it has a response. */
function begin(agent: AgentState, request: CapabilityRequest, { ruling, digest, trusted }: Permitted): DeviceOperation {
  const { running, runningByKey, world } = agent
  const stopper = new AbortController()
  const begun = operation({
    requestId: request.request_id,
    key: request.idempotency_key,
    digest,
    meanwhile: runningAnswer(request, ruling.approval, ruling.command),
    cancel: () => stopper.abort(new DOMException('cancelled', 'AbortError')),
  })
  running.set(begun.requestId, begun)
  runningByKey.set(begun.key, begun)
  const { manifest } = trusted
  void act({ request, ruling, digest, stopper, emit: begun.emit, world, manifest }).then((answer) => {
    if (answer.approval_status === 'required') agent.recentRefusals.keep(answer)
    running.delete(begun.requestId)
    runningByKey.delete(begun.key)
    begun.finish(answer)
  })
  return begun
}

/**
 * Returns the response of a running operation to a request with its idempotency key. Listeners of a
 * stream use the id of the first request.
 */
function join(request: CapabilityRequest, running: DeviceOperation): Reply | Promise<Reply> {
  return request.stream ? { answer: running.meanwhile, code: null } : wait(request, running)
}

async function wait(request: CapabilityRequest, running: DeviceOperation): Promise<Reply> {
  const answer = await running.answer
  return { answer: { ...answer, request_id: request.request_id }, code: answer.error?.code ?? null }
}

function repeat(agent: AgentState, request: CapabilityRequest, known: KeyRecord): Reply {
  const stored = storedAnswer(agent.world.journal, known)
  if (!stored)
    return refuse(agent, request, {
      code: 'indeterminate',
      message: 'The result of the call is no longer in the journal.',
    })
  return { answer: { ...stored, request_id: request.request_id }, code: stored.error?.code ?? null }
}

/** Returns the stored response from the journal. Null if there is none, or if it was pruned. */
function storedAnswer(journal: Journal, { answer }: KeyRecord): CapabilityAnswer | null {
  if (!answer) return null
  try {
    return { ...journal.answerAt(answer.place), audit_hash: answer.hash }
  } catch {
    return null
  }
}

type Refusal = Obstacle & { approval?: 'required' | 'refused'; command?: string | null }

/**
 * Refuses a verified request. The journal records the refusal, because a holder of a signing key
 * sent the request.
 */
function refuse(agent: AgentState, request: CapabilityRequest, refusal: Refusal): Reply {
  const { code, message, approval = 'refused', command = null } = refusal
  const { request_id, idempotency_key: key, capability } = request
  const hash = agent.world.journal.append({ kind: 'refused', request_id, key, capability, command, code })
  const answer = refusalOf({ request_id, device: request.device }, { code, message }, approval, command, hash)
  return { answer, code }
}

function runningAnswer(
  request: CapabilityRequest,
  approval: CapabilityAnswer['approval_status'],
  command: string | null,
): CapabilityAnswer {
  const about = { request_id: request.request_id, device: request.device }
  return answerOf(about, { status: 'running', ok: true, approval_status: approval, cmd_executed: command })
}

const interrupted = 'The agent ended during this call, so it is unknown how much of the call was done.'

/**
 * Returns a digest of everything that an idempotency key stands for. A repeated request has an
 * equal digest, but may have another time, nonce and grant.
 */
function digestOf({ device, capability, args, rehearse }: CapabilityRequest): string {
  return argsDigest({ device, capability, args, rehearse })
}

/**
 * The agent without its HTTP server: it takes request bytes and returns responses. There is one
 * agent per process.
 */
export type Agent = {
  call(body: Uint8Array): Promise<Reply>
  cancel(requestId: string, body: Uint8Array): Reply
  /**
   * Returns why the bearer may not read this path with its query. Null if the bearer may read it
   * once.
   */
  whyNotRead(leave: string | undefined, path: string, requestId?: string): Reply | null
  /** Returns a running operation, a stored response or `indeterminate`. Null for an unknown id. */
  lookUp(requestId: string): { running: DeviceOperation } | Reply | null
  journalAfter(after: number): JournalPage
  health(): MeshHealth
  reload(): Promise<void>
  /** Stops all operations, and waits until each operation has a response. */
  close(): Promise<void>
  deviceName(): string | null
}

export async function openAgent(world: AgentWorld): Promise<Agent> {
  const agent = newState(world)
  await reload(agent)
  return {
    call: (body) => call(agent, body),
    cancel: (requestId, body) => cancel(agent, requestId, body),
    whyNotRead: (leave, path, requestId = noRequestId) => whyNotRead(agent, leave, path, requestId),
    lookUp: (requestId) => lookUp(agent, requestId),
    journalAfter: (after) => journalAfter(agent, after),
    health: () => health(agent),
    reload: () => reload(agent),
    close: () => close(agent),
    deviceName: () => deviceName(agent),
  }
}

function whyNotRead(agent: AgentState, leave: string | undefined, path: string, requestId: string): Reply | null {
  const trusted = currentManifest(agent)
  if (!trusted) return unavailable(agent, requestId)
  const verified = verifyRead(leave, path, verificationContext(agent, trusted))
  if (!verified.ok) return reject(verified, requestId, trusted.manifest.device)
  rememberNonce(agent, verified.request)
  return null
}

function journalAfter({ world, device }: AgentState, after: number): JournalPage {
  const { first, entries } = entriesAfter(world.state, after)
  return { device: device ?? 'unknown', first, entries, last: world.journal.entries() }
}

function lookUp(agent: AgentState, requestId: string): { running: DeviceOperation } | Reply | null {
  const { journal } = agent.world
  const running = agent.running.get(requestId)
  if (running) return { running }
  const refused = agent.recentRefusals.of(requestId)
  if (refused) return { answer: refused, code: refused.error?.code ?? null }
  const known = journal.index.ofRequest(requestId)
  if (!known) return null
  const stored = known.state === 'done' ? storedAnswer(journal, known) : null
  if (stored) return { answer: stored, code: stored.error?.code ?? null }
  const about = { request_id: requestId, device: deviceName(agent) ?? agent.device ?? 'unknown' }
  // The hash of the request's entry, for an audit. The newest entry may belong to another request.
  const own = known.answer?.hash ?? known.acceptedHash
  const answer = refusalOf(about, { code: 'indeterminate', message: interrupted }, 'refused', null, own)
  return { answer, code: 'indeterminate' }
}

function cancel(agent: AgentState, requestId: string, body: Uint8Array): Reply {
  const trusted = currentManifest(agent)
  if (!trusted) return unavailable(agent, requestIdIn(body))
  const { device } = trusted.manifest
  const verified = verifyCancel(body, verificationContext(agent, trusted))
  if (!verified.ok) return reject(verified, requestIdIn(body), device)
  rememberNonce(agent, verified.request)
  const { request_id } = verified.request
  if (request_id !== requestId) {
    const message = 'The request and the address name different operations.'
    return reject({ code: 'malformed', message }, request_id, device)
  }
  const found = lookUp(agent, requestId)
  if (!found) return reject({ code: 'not_found', message: 'There is no such operation.' }, request_id, device)
  if (!('running' in found)) return found
  found.running.cancel()
  return { answer: found.running.meanwhile, code: null }
}

const maxLackCharacters = 500

function health(agent: AgentState): MeshHealth {
  const { journal, version, confinement, nowMs } = agent.world
  const manifest = currentManifest(agent)?.manifest
  const lost = journal.lost()
  const reason = lost === null ? null : `${lost}: the agent refuses writes until a person accepts the loss`
  return {
    device: manifest?.device ?? agent.device,
    status: manifest ? 'ready' : 'refusing',
    reason: manifest ? reason : agent.refusing,
    version,
    manifest_id: manifest?.id ?? null,
    manifest_expires_at: manifest?.expires_at ?? null,
    mode: manifest?.mode ?? null,
    knows: [...allCapabilities.map(({ capability }) => capability), ...knownFields],
    unavailable: {
      ...(manifest && (agent.capabilities.unavailable as Record<string, string>)),
      ...(confinement.lack !== null && { sandbox: confinement.lack.slice(0, maxLackCharacters).toWellFormed() }),
    },
    sandbox: confinement.sandbox,
    journal: { entries: journal.entries(), head: journal.head() },
    uptime_seconds: Math.floor((nowMs() - agent.startedMs) / 1000),
  }
}

async function close({ running, world }: AgentState): Promise<void> {
  const all = [...running.values()]
  for (const operation of all) operation.cancel()
  await Promise.all(all.map(({ answer }) => answer))
  world.confinement.close()
  world.journal.close()
}
