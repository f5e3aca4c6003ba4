import type { Db } from '../../db/connect.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { executableNamed } from '../../db/inventory/devices.ts'
import { proposedCall } from '../../db/log/calls.ts'
import { digestOf } from '../../domain/digest.ts'
import type { PostconditionProof } from '../../domain/envelope.ts'
import { inertText } from '../../domain/inert-text.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { parseStepKey } from '../../domain/step-key.ts'
import type { Preparation } from '../../domain/tool.ts'
import { toDeviceCall } from '../../mesh/registry.ts'
import type { DeviceProbe } from '../../mesh/specs/spec.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'
import { isSameFingerprint } from '../plan-state.ts'
import { askApprovalNeed, findApprovalNeed, getRootReads, isProvenRead } from './approval-need.ts'
import { askDevice, refuseByDevice, refuseUnreachable } from './ask-device.ts'
import {
  buildReadKey,
  type Executor,
  getDeadlineMs,
  type MappedCall,
  mapCall,
  readInput,
  requireExecutor,
} from './executor.ts'
import { describeProof } from './promise.ts'
import { namesVouched } from './vouch.ts'

type DevicePreparation = Pick<Preparation, 'stateFingerprint' | 'asks' | 'rootReads'> & {
  dryRun: Preparation['dryRun'] & { proof: PostconditionProof }
  resource: Executor['resource']
  device: string
  /**
   * Another resource that the call touches: a guest of the inventory that the call names by its
   * container.
   */
  touches?: ResourceRef[]
}

/** A call with the device that carries it out, its step key and its incident. */
type CallOnDevice = {
  executor: Executor
  mapped: MappedCall
  key: string
  incidentId: string
  /** Names that the command uses and that the run has looked up on this device. */
  names?: readonly string[]
}

type CallToPrepare = { tool: string; arguments: Record<string, unknown>; incidentId: string; attempt: number }

/**
 * Reads a run's proposed call from rows: the model's arguments, or those of a person who edited
 * them. The caller only gives the call's place in the log.
 */
async function requireProposedCall(db: Db, stepKey: string): Promise<CallToPrepare> {
  const place = parseStepKey(stepKey)
  const missing = () => refuseMissing(`proposed call ${stepKey}`)
  if (place?.kind !== 'tool_started' || place.step !== null) throw missing()
  const incident = await incidentById(db, place.incidentId)
  if (incident?.attempt !== place.attempt) throw missing()
  const proposed = await proposedCall(db, place)
  if (!proposed || proposed.call.secret) throw missing()
  const args = proposed.edit?.arguments ?? proposed.call.arguments
  if (args === null) throw missing()
  return { tool: proposed.call.tool, arguments: args, incidentId: place.incidentId, attempt: place.attempt }
}

/** Describes the effect of a proposed call on the resource, tried on a copy if possible. */
export async function prepareCall(deps: EffectDeps, id: string, stepKey: string): Promise<DevicePreparation> {
  const { incidentId, attempt, ...proposed } = await requireProposedCall(deps.db, stepKey)
  const call = toDeviceCall(proposed.tool, proposed.arguments)
  if (!call) throw refuseMissing(`device call of ${proposed.tool}`)
  return await prepareDeviceCall(deps, id, call, { incidentId, attempt, key: stepKey })
}

/**
 * Describes the effect of a call without a row. `at`: the run of the call, and the key from which
 * the keys of its reads are made.
 */
export async function prepareDeviceCall(
  deps: EffectDeps,
  id: string,
  call: NonNullable<ReturnType<typeof toDeviceCall>>,
  at: { incidentId: string; attempt: number; key: string },
): Promise<DevicePreparation> {
  const { incidentId, attempt, key: stepKey } = at
  const { spec } = call
  const input = readInput(spec, call.args)
  const executor = await requireExecutor(deps.db, id)
  const mapped = mapCall(executor, spec, input)
  const { resource, device, through } = executor
  const names = await namesVouched(deps, executor, mapped, { incidentId, attempt })
  const asked = { key: stepKey, incidentId, deadlineMs: getDeadlineMs(executor, true), names }
  const asks = findApprovalNeed(device, mapped, names) ?? (await askApprovalNeed(deps, executor, mapped, asked))
  const { fingerprint, rehearsal, why } =
    asks || spec.effect === 'write'
      ? await rehearse(deps, { executor, mapped, key: stepKey, incidentId, names })
      : { fingerprint: '', rehearsal: null, why: null }
  // Leaves out reads as root if the call goes through a host: there the call is another command,
  // which the device does not run as root.
  const rootReads = through === null ? getRootReads(device, mapped.capability) : undefined
  const guest = await findGuest(deps.db, executor, rehearsal?.container ?? input.container)
  return {
    resource,
    device: device.id,
    ...(guest && { touches: [guest] }),
    stateFingerprint: fingerprint,
    ...(asks && { asks }),
    ...(rootReads?.length && { rootReads }),
    dryRun: {
      possible: rehearsal !== null && rehearsal.tried !== false,
      summary: `${spec.summary(input, aboutOf(rehearsal))}, on ${resource.id}`,
      proof: describeProof(executor, { spec, input }),
      details: {
        on: resource,
        device: device.id,
        mode: device.mode,
        capability: mapped.capability,
        args: mapped.args,
        ...(through && { through }),
        ...(rehearsal && { rehearsal }),
        ...(why && { notRehearsed: why }),
      },
    },
  }
}

function aboutOf(rehearsal: Record<string, unknown> | null): string | null {
  return typeof rehearsal?.about === 'string' ? inertText(rehearsal.about, 120) : null
}

/**
 * Finds the guest that runs as this container on this host, because two calls to the same guest
 * must not run at once. A container that is no guest is no resource; the lease of the device covers
 * it.
 */
async function findGuest(db: Db, { resource }: Executor, container: unknown): Promise<ResourceRef | null> {
  const named = typeof container === 'string' ? await executableNamed(db, container) : null
  return named?.kind === 'vm' && named.host === resource.id ? { kind: 'vm', id: String(container) } : null
}

/** `why`: the reason why there is no dry run, for the person who decides. */
type Rehearsal = { fingerprint: string; rehearsal: Record<string, unknown> | null; why: string | null }

const notAsRoot = 'This device does everything as root, so each read would require approval.'
const notThroughHost = 'The guest is reached through the agent of its host, which has no dry run inside a guest.'

/**
 * Reads the fingerprint of the state on which the action depends, and makes the dry run, on the
 * device now.
 */
async function rehearse(deps: EffectDeps, call: CallOnDevice): Promise<Rehearsal> {
  const { executor, mapped, key, incidentId } = call
  const { spec, input, capability, args } = mapped
  const { device, through } = executor
  // Includes the device and the user in the fingerprint: a person approves them too.
  const by = { device: device.id, mode: device.mode, through }
  const withoutRehearsal = (state: object, why: string | null): Rehearsal => ({
    fingerprint: digestOf(state),
    rehearsal: null,
    why,
  })
  // Reads nothing beforehand on a device that acts as root, because each read there needs an
  // approval.
  if (device.mode === 'sudo') return withoutRehearsal(by, notAsRoot)
  // Makes no dry run for a guest behind `pct`, of which the host knows nothing. A container guest
  // is read from outside, like any container.
  if (through === 'pct') return withoutRehearsal(by, notThroughHost)
  const state = spec.state ? await readIfAllowed(deps, call, spec.state(input)) : null
  if (!spec.rehearses || isProvenRead(executor, mapped, call.names ?? []))
    return withoutRehearsal({ ...by, state }, null)
  const reply = await askDevice(deps, device, {
    key: buildReadKey(key, 'rehearse'),
    capability,
    args,
    rehearse: true,
    incidentId,
    deadlineMs: getDeadlineMs(executor, true),
  })
  if (reply.kind !== 'answer') throw refuseUnreachable(device.id, capability, reply.reason)
  const { answer } = reply
  if (!answer.ok && !isWithoutRehearsal(answer.error?.code)) throw refuseByDevice(capability, answer)
  const { rests_on: rests, ...rest } = answer.result ?? {}
  return {
    fingerprint: digestOf({ ...by, state, diff: rest.diff ?? null, ...(rests !== undefined && { rests }) }),
    rehearsal: answer.ok ? { ...rest, truncated: answer.truncated } : null,
    why: answer.ok ? null : (answer.error?.message ?? null),
  }
}

/**
 * Whether the device cannot make a dry run of the call, or demands approval for it. The call may
 * still be proposed.
 */
function isWithoutRehearsal(code: string | undefined): boolean {
  return code === 'capability_unavailable' || code === 'approval_required'
}

/**
 * Reads from a device; `result` is null if the object does not exist. Returns null if the device
 * demands approval, such as for a sensitive file. Refuses if the read is not possible now.
 */
export async function readIfAllowed(
  deps: EffectDeps,
  { executor, key, incidentId }: Omit<CallOnDevice, 'mapped'>,
  look: DeviceProbe,
): Promise<{ result: Record<string, unknown> | null } | null> {
  const reply = await askDevice(deps, executor.device, {
    key: buildReadKey(key, 'look'),
    ...look,
    incidentId,
    deadlineMs: getDeadlineMs(executor, true),
  })
  if (reply.kind !== 'answer') throw refuseUnreachable(executor.device.id, look.capability, reply.reason)
  const { answer } = reply
  if (answer.error?.code === 'not_found') return { result: null }
  if (answer.error?.code === 'approval_required') return null
  if (!answer.ok) throw refuseByDevice(look.capability, answer)
  return { result: answer.result ?? {} }
}

/** Requires the state that the person saw, by reading it once more just before the write. */
export async function requireSameState(
  deps: EffectDeps,
  call: CallOnDevice,
  ifMatch: string | undefined,
): Promise<void> {
  if (ifMatch === undefined) return
  const { fingerprint } = await rehearse(deps, call)
  if (isSameFingerprint(ifMatch, fingerprint)) return
  const detail = `${call.executor.resource.id} changed since the approval. Nothing was done.`
  throw new EffectRefused('state_changed', 'STATE_CHANGED', detail, { fields: { currentFingerprint: fingerprint } })
}
