import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { CapabilityAnswer, CapabilityRequest, JournalPage, MeshErrorCode, MeshHealth } from '../../domain/mesh.ts'
import { argsDigest } from '../sign.ts'
import { act, answerOf, refusalOf } from './act.ts'
import { type Available, availableOf, capabilitiesOn, type Elsewhere } from './capabilities.ts'
import { entriesAfter } from './chain.ts'
import type { Confinement } from './confine.ts'
import { admitCall, admitCancel, admitRead, type Doorstep, noRequestId, type Refused, requestIdIn } from './door.ts'
import { rule } from './guard.ts'
import type { Journal } from './journal.ts'
import type { Known } from './known.ts'
import { type Trusted, trustManifest } from './manifest.ts'
import type { Nonces } from './nonces.ts'
import { lately, type Operation, operation } from './operation.ts'
import { loadParsers } from './verdict.ts'

export type World = {
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
  confinement: Confinement
  nowMs(): number
} & Elsewhere

/** An answer with what a client of HTTP looks at first. */
export type Reply = { answer: CapabilityAnswer; code: MeshErrorCode | null }

/** The agent behind its door: bytes in, answers out. One per process. */
export type Agent = Awaited<ReturnType<typeof openAgent>>

export async function openAgent(world: World) {
  const { journal, nonces, nowMs } = world
  const operations = new Map<string, ReturnType<typeof operation>>()
  const byKey = new Map<string, ReturnType<typeof operation>>()
  const refusedLately = lately()
  let has: Available = { available: new Map(), unavailable: {} }
  let readings = 0
  const startedMs = nowMs()
  let trusted: Trusted | null = null
  let refusing: string | null = 'it is starting'
  let device = world.device

  /** Reads the manifest again. What runs goes on; a manifest that cannot be believed stops everything that comes. */
  async function reload(): Promise<void> {
    readings += 1
    const turn = readings
    const read = readManifest()
    if (!read.ok) {
      trusted = null
      refusing = read.reason
      return
    }
    const found = await availableOf(capabilitiesOn(world), read.trusted.manifest)
    // A later reading overtakes; and all at once: whoever asks meanwhile is answered by the manifest before.
    if (turn !== readings) return
    device ??= read.trusted.manifest.device
    has = found
    trusted = read.trusted
    refusing = null
  }

  function readManifest() {
    try {
      const text = readFileSync(world.manifestFile, 'utf8')
      return trustManifest(text, { rootKey: world.rootKey, device, nowMs: nowMs() })
    } catch (error) {
      return { ok: false as const, reason: `the manifest cannot be read: ${(error as Error).message}` }
    }
  }

  /** The manifest, unless it has expired since it was read. */
  function current(): Trusted | null {
    if (trusted && trusted.expiresMs <= nowMs()) {
      refusing = `the manifest expired at ${trusted.manifest.expires_at}`
      trusted = null
    }
    return trusted
  }

  function doorstep({ manifest, keys }: Trusted): Doorstep {
    const { has, forgottenBeforeMs } = nonces
    return { device: manifest.device, keys, nowMs: nowMs(), hasSeen: has, forgottenBeforeMs }
  }

  async function call(body: Uint8Array): Promise<Reply> {
    const here = current()
    if (!here) return closed(requestIdIn(body))
    const admitted = admitCall(body, doorstep(here))
    if (!admitted.ok) return turnedAway(admitted, requestIdIn(body), here.manifest.device)
    const { request } = admitted
    // Before anything is awaited: two copies of one request must not both pass the door.
    nonces.remember(request.nonce, Date.parse(request.issued_at), nowMs())
    try {
      await loadParsers(request.args)
      return await perform(request, here)
    } catch (error) {
      return refuse(request, 'failed', `The agent failed: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  function perform(request: CapabilityRequest, here: Trusted): Reply | Promise<Reply> {
    const digest = digestOf(request)
    const running = byKey.get(request.idempotency_key)
    const known = journal.known.ofKey(request.idempotency_key)
    const before = running?.digest ?? known?.digest
    if (before !== undefined && before !== digest)
      return refuse(request, 'idempotency_key_reused', 'This key was used for something else.')
    if (running) return join(request, running)
    if (known?.state === 'done') return repeat(request, known)
    if (known && known.effect === 'write') return refuse(request, 'indeterminate', interrupted)

    const ruling = rule(request, {
      manifest: here.manifest,
      keys: here.keys,
      ...has,
      sandbox: world.confinement.sandbox,
      hidden: world.hidden,
      nowMs: nowMs(),
      isUsedGrant: journal.known.isUsedGrant,
    })
    if (!ruling.ok) return refuse(request, ruling.code, ruling.message, ruling)
    const lost = journal.lost()
    if (lost !== null && ruling.effect === 'write')
      return refuse(request, 'indeterminate', `The journal was lost (${lost}): nobody can tell what was done already.`)
    if (operations.has(request.request_id))
      return refuse(request, 'malformed', 'This request id runs under another key.')
    if (byKey.size >= here.manifest.limits.concurrent)
      return refuse(request, 'busy', `There are ${byKey.size} running already.`)

    const stopper = new AbortController()
    const going = operation({
      requestId: request.request_id,
      key: request.idempotency_key,
      digest,
      meanwhile: runningAnswer(request, ruling.approval, ruling.command),
      cancel: () => stopper.abort(new DOMException('cancelled', 'AbortError')),
    })
    operations.set(going.requestId, going)
    byKey.set(going.key, going)
    void act({ request, ruling, digest, stopper, emit: going.emit, world, manifest: here.manifest }).then((answer) => {
      if (answer.approval_status === 'required') refusedLately.keep(answer)
      operations.delete(going.requestId)
      byKey.delete(going.key)
      going.finish(answer)
    })
    return join(request, going)
  }

  async function wait(request: CapabilityRequest, going: Operation): Promise<Reply> {
    const answer = await going.answer
    return { answer: { ...answer, request_id: request.request_id }, code: answer.error?.code ?? null }
  }

  /** Also for the same key while it runs: the same answer, without doing it twice. A stream is read under the id it began with. */
  function join(request: CapabilityRequest, going: Operation): Reply | Promise<Reply> {
    return request.stream ? { answer: going.meanwhile, code: null } : wait(request, going)
  }

  function repeat(request: CapabilityRequest, known: Known): Reply {
    const stored = storedAnswer(known)
    if (!stored) return refuse(request, 'indeterminate', 'Its answer is not in the journal any more.')
    return { answer: { ...stored, request_id: request.request_id }, code: stored.error?.code ?? null }
  }

  function storedAnswer({ answer }: Known): CapabilityAnswer | null {
    if (!answer) return null
    try {
      return { ...journal.answerAt(answer.place), audit_hash: answer.hash }
    } catch {
      return null
    }
  }

  /** A refusal behind the door is told to the journal as well: somebody who may sign has asked for it. */
  function refuse(
    request: CapabilityRequest,
    code: MeshErrorCode,
    message: string,
    { approval, command }: { approval: 'required' | 'refused'; command: string | null } = {
      approval: 'refused',
      command: null,
    },
  ): Reply {
    const { request_id, idempotency_key: key, capability } = request
    const hash = journal.append({ kind: 'refused', request_id, key, capability, command, code })
    const answer = refusalOf({ request_id, device: request.device }, { code, message }, approval, command, hash)
    return { answer, code }
  }

  function turnedAway({ code, message }: Refused, request_id: string, device: string): Reply {
    return { answer: refusalOf({ request_id, device }, { code, message }, 'refused', null, null), code }
  }

  function closed(requestId: string): Reply {
    const message = `This agent does nothing: ${refusing}.`
    return turnedAway({ ok: false, code: 'manifest_invalid', message }, requestId, device ?? 'unknown')
  }

  /** Why whoever shows this may not read what is asked for, a path with its query; null when they may, this once. */
  function whyNotRead(shown: string | undefined, asked: string, requestId = noRequestId): Reply | null {
    const here = current()
    if (!here) return closed(requestId)
    const admitted = admitRead(shown, asked, doorstep(here))
    if (!admitted.ok) return turnedAway(admitted, requestId, here.manifest.device)
    nonces.remember(admitted.request.nonce, Date.parse(admitted.request.issued_at), nowMs())
    return null
  }

  function journalAfter(after: number): JournalPage {
    return {
      device: device ?? 'unknown',
      ...entriesAfter(world.state, after),
      last: journal.entries(),
    }
  }

  /** What there is of an operation: it runs, the journal knows its answer, or nobody can tell. */
  function lookUp(requestId: string): { running: Operation } | Reply | null {
    const running = operations.get(requestId)
    if (running) return { running }
    const refused = refusedLately.of(requestId)
    if (refused) return { answer: refused, code: refused.error?.code ?? null }
    const known = journal.known.ofRequest(requestId)
    if (!known) return null
    const stored = known.state === 'done' ? storedAnswer(known) : null
    if (stored) return { answer: stored, code: stored.error?.code ?? null }
    const about = { request_id: requestId, device: current()?.manifest.device ?? device ?? 'unknown' }
    const answer = refusalOf(about, { code: 'indeterminate', message: interrupted }, 'refused', null, journal.head())
    return { answer, code: 'indeterminate' }
  }

  function cancel(requestId: string, body: Uint8Array): Reply {
    const here = current()
    if (!here) return closed(requestIdIn(body))
    const admitted = admitCancel(body, doorstep(here))
    if (!admitted.ok) return turnedAway(admitted, requestIdIn(body), here.manifest.device)
    nonces.remember(admitted.request.nonce, Date.parse(admitted.request.issued_at), nowMs())
    const about = { request_id: admitted.request.request_id, device: here.manifest.device }
    if (about.request_id !== requestId) {
      const message = 'The request names another operation than the address.'
      return { answer: refusalOf(about, { code: 'malformed', message }, 'refused', null, null), code: 'malformed' }
    }
    const found = lookUp(requestId)
    if (!found) {
      const message = 'There is no such operation.'
      return { answer: refusalOf(about, { code: 'not_found', message }, 'refused', null, null), code: 'not_found' }
    }
    if (!('running' in found)) return found
    found.running.cancel()
    return { answer: found.running.meanwhile, code: null }
  }

  function health(): MeshHealth {
    const here = current()
    const lost = journal.lost()
    return {
      device: here?.manifest.device ?? device,
      status: here ? 'ready' : 'refusing',
      reason: here ? (lost === null ? null : `${lost}: nothing is written until somebody accepts that`) : refusing,
      version: world.version,
      manifest_id: here?.manifest.id ?? null,
      manifest_expires_at: here?.manifest.expires_at ?? null,
      mode: here?.manifest.mode ?? null,
      unavailable: here ? (has.unavailable as Record<string, string>) : {},
      sandbox: world.confinement.sandbox,
      journal: { entries: journal.entries(), head: journal.head() },
      uptime_seconds: Math.floor((nowMs() - startedMs) / 1000),
    }
  }

  function runningAnswer(
    request: CapabilityRequest,
    approval: CapabilityAnswer['approval_status'],
    command: string | null,
  ): CapabilityAnswer {
    const about = { request_id: request.request_id, device: request.device }
    return answerOf(about, { status: 'running', ok: true, approval_status: approval, cmd_executed: command })
  }

  /** Stops everything that runs, and waits until each has its answer. */
  async function close(): Promise<void> {
    const all = [...operations.values()]
    for (const running of all) running.cancel()
    await Promise.all(all.map(({ answer }) => answer))
    world.confinement.close()
    journal.close()
  }

  await reload()
  const deviceName = () => current()?.manifest.device ?? null
  return { call, cancel, whyNotRead, lookUp, journalAfter, health, reload, close, deviceName }
}

const interrupted = 'The agent ended while it was being done: nobody can tell how far it came.'

/** What a key stands for: the same thing asked again has the same digest, whatever its time, nonce and grant. */
function digestOf({ device, capability, args, rehearse }: CapabilityRequest): string {
  return argsDigest({ device, capability, args, rehearse })
}
