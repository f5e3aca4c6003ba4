import { setTimeout as sleep } from 'node:timers/promises'
import { HttpError } from '../../clients/http.ts'
import { closeCall, openCall } from '../../db/device-calls.ts'
import type { DeviceRow } from '../../db/devices.ts'
import type { Capability, CapabilityAnswer } from '../../domain/mesh.ts'
import {
  callDevice,
  InvalidDeviceResponseError as DeviceLiesError,
  followOperation,
  readOperation,
  wasNotSent,
} from '../../mesh/client.ts'
import { issueGrant, issueRequest } from '../../mesh/issue.ts'
import type { MeshKeys } from '../../mesh/keys.ts'
import { argsDigest } from '../../mesh/sign.ts'
import { cleanse } from '../../safety/cleanse.ts'
import type { ApiDeps } from '../deps.ts'
import { addressOf, requireMesh } from './executor.ts'

export type Asking = {
  /** `Idempotency-Key` of the call: what the device does once. */
  key: string
  capability: Capability
  args: Record<string, unknown>
  rehearse?: boolean
  /** What a person gave leave by; only a consumed approval or a used grant of exactly this action gets here. */
  authority?: string | null
  incidentId?: string | null
  callId?: string | null
  deadlineMs: number
  /** Says of what a write came to that it did not do its work, though the device carried it out. */
  endedBadly?: (result: Record<string, unknown>) => boolean
  /** Lines of its output, as they come. */
  onLine?: (line: string) => void
  signal?: AbortSignal
}

/**
 * `answer`: the device's own, cleansed. `not_sent`: it surely never came there. `unknown`: it may have; the key tells, once the device
 * can be asked.
 */
export type Heard =
  | { kind: 'answer'; answer: CapabilityAnswer }
  | { kind: 'not_sent'; reason: string }
  | { kind: 'unknown'; reason: string }

const tries = 4
const firstWaitMs = 150

/**
 * Asks a device for one thing under one key, however often it has to be sent for that: its journal does it once. The call is a row
 * before it is sent, with the request and the grant that every repeat is sent under.
 */
export async function askDevice(deps: ApiDeps, device: DeviceRow, asking: Asking): Promise<Heard> {
  const { db, metrics } = deps
  const { keys } = requireMesh(deps)
  const { key, capability, args, authority = null, rehearse = false, incidentId = null, callId = null } = asking
  const call = await openCall(db, {
    ...{ key, deviceId: device.id, incidentId, callId, capability, rehearse, authority },
    argsDigest: argsDigest(args),
  })
  if (call.argsDigest !== argsDigest(args) || call.capability !== capability || call.deviceId !== device.id) {
    return { kind: 'not_sent', reason: 'this key was used for another call' }
  }
  const grant =
    call.grantId === null || call.authority === null
      ? null
      : issueGrant(
          {
            ...{ id: call.grantId, device: device.id, requestId: call.requestId, capability, args },
            ...{ authority: call.authority, issuedAt: call.begunAt },
          },
          keys.signing,
        )
  const beganAt = performance.now()
  const heard = await send(deps, device, asking, () =>
    issueRequest(
      {
        ...{ requestId: call.requestId, device: device.id, capability, args, idempotencyKey: key, rehearse, grant },
        ...{ deadlineMs: asking.deadlineMs, stream: asking.onLine !== undefined },
      },
      keys.signing,
    ),
  )
  const seconds = (performance.now() - beganAt) / 1000
  const errorCode = heard.kind === 'answer' ? errorOf(heard.answer, asking) : null
  const outcome = heard.kind === 'answer' ? (errorCode ?? 'ok') : heard.kind
  metrics.deviceCalls.inc({ capability, outcome })
  metrics.deviceCallSeconds.observe({ capability, outcome }, seconds)
  if (heard.kind === 'answer') await closeCall(db, key, heard.answer, errorCode)
  return heard
}

function errorOf({ ok, error, result }: CapabilityAnswer, { endedBadly }: Asking): string | null {
  if (ok) return endedBadly?.(result ?? {}) ? 'exit_code' : null
  return error?.code ?? 'failed'
}

async function send(
  deps: ApiDeps,
  device: DeviceRow,
  { onLine, signal, deadlineMs }: Asking,
  request: () => ReturnType<typeof issueRequest>,
): Promise<Heard> {
  const mesh = requireMesh(deps)
  const { keys } = mesh
  const address = addressOf(mesh, device)
  let everSent = false
  let reason = ''
  const untilMs = performance.now() + deadlineMs
  for (let attempt = 0; attempt < tries && (attempt === 0 || performance.now() < untilMs); attempt++) {
    if (attempt > 0) await sleep(firstWaitMs * 2 ** attempt)
    try {
      const asked = request()
      const answer = await callDevice(address, asked, signal)
      // Nothing was begun, and nothing stands in its journal: it may have room in a moment.
      if (answer.error?.code === 'busy' && attempt < tries - 1) continue
      if (answer.status !== 'running') return { kind: 'answer', answer: cleanse(answer) }
      everSent = true
      const ended = await untilEnded(address, asked.request_id, { deadlineMs, onLine, signal, keys })
      if (ended) return { kind: 'answer', answer: cleanse(ended) }
      reason = `${device.id} has not said how it ended`
      return { kind: 'unknown', reason }
    } catch (error) {
      if (!(error instanceof HttpError) && !(error instanceof DeviceLiesError)) throw error
      everSent ||= !wasNotSent(error)
      reason = error.message
      // Whoever lies once is not asked to say it better; what was done there, nobody can tell from it.
      if (error instanceof DeviceLiesError) break
      if (error.code === 'aborted') break
    }
  }
  return { kind: everSent ? 'unknown' : 'not_sent', reason }
}

/** Follows a long operation to its end, by its lines or by asking; null when its time is over. */
async function untilEnded(
  address: ReturnType<typeof addressOf>,
  requestId: string,
  { deadlineMs, onLine, signal, keys }: Pick<Asking, 'deadlineMs' | 'onLine' | 'signal'> & { keys: MeshKeys },
): Promise<CapabilityAnswer | null> {
  const untilMs = performance.now() + deadlineMs + 5_000
  if (onLine) {
    try {
      const options = { timeoutMs: deadlineMs + 5_000, ...(signal && { signal }) }
      const answer = await followOperation(address, requestId, keys.signing, onLine, options)
      if (answer && answer.status !== 'running') return answer
    } catch (error) {
      // The lines are lost; how it ends is asked below.
      if (!(error instanceof HttpError)) throw error
    }
  }
  for (let waitMs = 100; performance.now() < untilMs; waitMs = Math.min(1_000, waitMs * 2)) {
    try {
      const answer = await readOperation(address, requestId, keys.signing)
      if (answer.status !== 'running') return answer
    } catch (error) {
      if (!(error instanceof HttpError)) throw error
    }
    await sleep(waitMs)
  }
  return null
}
