import { capabilities, type JournalPage, type MeshHealth } from '../../domain/mesh.ts'
import { refusalOf } from './act.ts'
import {
  type AgentState,
  currentManifest,
  deviceName,
  newState,
  type Reply,
  reject,
  reload,
  rememberNonce,
  unavailable,
  verificationContext,
  type World,
} from './agent-state.ts'
import { call, interrupted, storedAnswer } from './calls.ts'
import { entriesAfter } from './chain.ts'
import type { Operation } from './operation.ts'
import { noRequestId, requestIdIn, verifyCancel, verifyRead } from './verify-request.ts'

/** The agent behind its HTTP server: bytes in, answers out. One per process. */
export type Agent = {
  call(body: Uint8Array): Promise<Reply>
  cancel(requestId: string, body: Uint8Array): Reply
  /**
   * Why the bearer of this leave may not read a path with its query; null when it may, this once.
   */
  whyNotRead(leave: string | undefined, path: string, requestId?: string): Reply | null
  /**
   * An operation that runs, its stored answer, or `indeterminate`. Null: the agent knows none with
   * this id.
   */
  lookUp(requestId: string): { running: Operation } | Reply | null
  journalAfter(after: number): JournalPage
  health(): MeshHealth
  reload(): Promise<void>
  /** Stops everything that runs, and waits until each has its answer. */
  close(): Promise<void>
  deviceName(): string | null
}

export async function openAgent(world: World): Promise<Agent> {
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

function lookUp(agent: AgentState, requestId: string): { running: Operation } | Reply | null {
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
  const answer = refusalOf(about, { code: 'indeterminate', message: interrupted }, 'refused', null, journal.head())
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
    const message = 'The request names another operation than the address.'
    return reject({ code: 'malformed', message }, request_id, device)
  }
  const found = lookUp(agent, requestId)
  if (!found) return reject({ code: 'not_found', message: 'There is no such operation.' }, request_id, device)
  if (!('running' in found)) return found
  found.running.cancel()
  return { answer: found.running.meanwhile, code: null }
}

function health(agent: AgentState): MeshHealth {
  const { journal, version, confinement, nowMs } = agent.world
  const manifest = currentManifest(agent)?.manifest
  const lost = journal.lost()
  const reason = lost === null ? null : `${lost}: nothing is written until somebody accepts that`
  return {
    device: manifest?.device ?? agent.device,
    status: manifest ? 'ready' : 'refusing',
    reason: manifest ? reason : agent.refusing,
    version,
    manifest_id: manifest?.id ?? null,
    manifest_expires_at: manifest?.expires_at ?? null,
    mode: manifest?.mode ?? null,
    knows: [...capabilities],
    unavailable: manifest ? (agent.capabilities.unavailable as Record<string, string>) : {},
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
