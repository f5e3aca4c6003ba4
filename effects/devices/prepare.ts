import type { Db } from '../../db/connect.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { type DeviceRow, executableNamed } from '../../db/inventory/devices.ts'
import { proposedCall } from '../../db/log/calls.ts'
import { digestOf } from '../../domain/digest.ts'
import type { Proof } from '../../domain/envelope.ts'
import type { Capability } from '../../domain/mesh.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { parseStepKey } from '../../domain/step-key.ts'
import type { Preparation, Risk } from '../../domain/tool.ts'
import { specOf, toDeviceCall } from '../../mesh/registry.ts'
import { heldAt, isInside, type Postcondition, type Probe, plainRoot } from '../../mesh/specs/spec.ts'
import { type CommandVerdict, judgeArgv, judgeCommand } from '../../safety/command/judge.ts'
import { type EffectDeps, EffectRefused, refuseMissing } from '../effect.ts'
import { isSameFingerprint } from '../plan-state.ts'
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

/** Why a person has to approve a call that the judge takes for a read. */
export type ApprovalNeed = { risk: Risk; why: string }

/**
 * What the guard of a device would ask approval for, predicted from rows. Null for a call that the device does without
 * approval, for one that it refuses under any grant, and for one that the judge takes for a write as well. The device
 * decides: where this prediction is wrong, it answers `approval_required` and does nothing.
 */
export function findApprovalNeed(
  { id, mode, terms, health }: Pick<DeviceRow, 'id' | 'mode' | 'terms' | 'health'>,
  { spec, input, capability, args }: MappedCall,
): ApprovalNeed | null {
  if (mode === 'sudo') return { risk: 'critical', why: `${id} does everything as root, so everything is asked` }
  const verdict = judgeLikeDevice({ capability, args }, getRootReads({ mode, terms }, capability))
  if (verdict?.verdict === 'refuse') return null
  if (verdict?.verdict === 'ask') {
    // The judge knows the hosts of the inventory and how a guest is reached; the device does not.
    const own = judgeLikeDevice({ capability: spec.capability, args: spec.toArgs(input) }, undefined, true)
    const isRead = own?.verdict === 'run' || verdict.code === 'EXFILTRATION'
    return isRead ? { risk: 'medium', why: `${id} takes no proven look in it: ${verdict.reason}` } : null
  }
  if (verdict === null && spec.effect !== 'read') return null
  const path = typeof args.path === 'string' ? args.path : null
  if (path !== null && heldAt(path) === 'secret' && terms.roots.some((root) => isInside(path, plainRoot(root.path)))) {
    // The device refuses a part of a secret file under any grant.
    if (Number(args.offset ?? 0) > 0) return null
    return { risk: 'high', why: `${id} holds ${path} for secret; what is not recognised as a secret is read` }
  }
  if (health?.sandbox === 'none') return { risk: 'medium', why: `${id} cannot confine what it reads` }
  // With this sandbox, another user is the only confinement.
  const obeying = health?.sandbox === 'user' ? verdict?.obeys[0] : undefined
  if (obeying !== undefined) {
    const why = `${obeying} obeys files of the place, and ${id} confines reads as another user alone`
    return { risk: 'medium', why }
  }
  const unlisted = verdict?.commands.find((name) => terms.auto_approve.length > 0 && !terms.auto_approve.includes(name))
  return unlisted === undefined
    ? null
    : { risk: 'medium', why: `the manifest of ${id} lets no ${unlisted} run unasked` }
}

/**
 * What a device wants approval for just now, though rows predict that it does not: a read whose program obeys files on the
 * device. The device itself is asked, because its files are unknown here. Null where there is nothing to ask, and from a
 * device that does not know the question.
 */
export async function askApprovalNeed(
  deps: EffectDeps,
  { device }: Pick<Executor, 'device'>,
  { capability, args }: Probe,
  at: { key: string; incidentId: string; deadlineMs: number },
): Promise<ApprovalNeed | null> {
  const verdict = judgeLikeDevice({ capability, args }, getRootReads(device, capability))
  if (verdict?.verdict !== 'run') return null
  if (verdict.conditions.length === 0 && !verdict.sees.includes('mounts') && verdict.rootRead === null) return null
  const key = buildReadKey(at.key, 'rests')
  const reply = await askDevice(deps, device, { ...at, key, capability, args, rehearse: true })
  const result = reply.kind === 'answer' && reply.answer.ok ? reply.answer.result : null
  const unmet = result?.unmet
  // A device that rehearses it takes it for a write: it holds no such manifest yet.
  if (verdict.rootRead && (unmet === undefined || result?.told !== undefined)) {
    return { risk: 'critical', why: `the manifest that ${device.id} holds does not allow it as root` }
  }
  return typeof unmet === 'string'
    ? { risk: verdict.rootRead ? 'critical' : 'medium', why: `${device.id} does not do it unasked: ${unmet}` }
    : null
}

/** Is it a command that the device proves to be a read, also where it wants approval? Such a call has no rehearsal. */
export function isProvenRead({ device }: Pick<Executor, 'device'>, look: Probe): boolean {
  return judgeLikeDevice(look, getRootReads(device, look.capability))?.verdict === 'run'
}

/** The commands that may read as root here: on the device itself, and not in a container. */
export function getRootReads({ mode, terms }: Pick<DeviceRow, 'mode' | 'terms'>, capability: Capability): RootReads {
  return mode !== 'sudo' && /^shell\./.test(capability) ? terms.root_reads : undefined
}

type RootReads = string[][] | undefined

/** The verdict of the device, which knows no hosts and cannot look into containers; null for a call without a command. */
function judgeLikeDevice(
  { capability, args }: Probe,
  rootReads?: RootReads,
  canLook = capability !== 'docker.container.exec',
): CommandVerdict | null {
  const directory = typeof args.cwd === 'string' ? args.cwd : '/'
  const context = { knownHosts: new Set<string>(), directory, canLook, rootReads }
  if (typeof args.text === 'string' && capability === 'shell.eval') return judgeCommand(args.text, context)
  return Array.isArray(args.argv) ? judgeArgv(args.argv.map(String), context) : null
}

/**
 * What a write promises that can be read on the device afterwards. Null where nothing can: its arguments promise nothing, it
 * goes through a host, or the device would want approval for the read.
 */
export function findPromise(
  executor: Executor,
  { spec, input }: Pick<MappedCall, 'spec' | 'input'>,
): Postcondition | null {
  if (executor.through !== null) return null
  const promised = spec.promise?.(input) ?? null
  if (promised === null) return null
  const { capability, args } = promised.look(null)
  const look = { spec: specOf(capability), input: args, capability, args }
  return findApprovalNeed(executor.device, look) === null ? promised : null
}

/** What will prove that this call worked, for the person who decides about it. */
export function describeProof(executor: Executor, mapped: Pick<MappedCall, 'spec' | 'input'>): Proof {
  const { promised, otherwise } = mapped.spec.proof
  return promised !== null && findPromise(executor, mapped) !== null
    ? { by: 'state', text: promised }
    : { by: 'nothing', text: otherwise }
}

export type DevicePreparation = Pick<Preparation, 'stateFingerprint' | 'asks' | 'rootReads'> & {
  dryRun: Preparation['dryRun'] & { proof: Proof }
  resource: Executor['resource']
  device: string
  /** Another resource that it touches: a guest of the inventory that the call names by its container. */
  touches?: ResourceRef[]
}

/** A mapped call on its device, and the step key and incident that it belongs to. */
export type CallOnDevice = { executor: Executor; mapped: MappedCall; key: string; incidentId: string }

type CallToPrepare = { tool: string; arguments: Record<string, unknown>; incidentId: string }

/**
 * The call that a model proposed and that a run is about to judge, read from rows: its arguments, or a person's edit of
 * them. The caller only names the place in the log.
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
  return { tool: proposed.call.tool, arguments: args, incidentId: place.incidentId }
}

/** What a proposed call would do to the resource: rehearsed on a copy where the device can, described otherwise. */
export async function prepareCall(deps: EffectDeps, id: string, stepKey: string): Promise<DevicePreparation> {
  const proposed = await requireProposedCall(deps.db, stepKey)
  const { incidentId } = proposed
  const call = toDeviceCall(proposed.tool, proposed.arguments)
  if (!call) throw refuseMissing(`device call of ${proposed.tool}`)
  const { spec } = call
  const input = readInput(spec, call.args)
  const executor = await requireExecutor(deps.db, id)
  const mapped = mapCall(executor, spec, input)
  const { resource, device, through } = executor
  const at = { key: stepKey, incidentId, deadlineMs: getDeadlineMs(executor, true) }
  const asks = findApprovalNeed(device, mapped) ?? (await askApprovalNeed(deps, executor, mapped, at))
  const { fingerprint, rehearsal, why } =
    asks || spec.effect === 'write'
      ? await rehearse(deps, { executor, mapped, key: stepKey, incidentId })
      : { fingerprint: '', rehearsal: null, why: null }
  // Through a host the call becomes another command, run by something other than the device.
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
      summary: `${spec.summary(input)}, on ${resource.id}`,
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

/**
 * The guest of the inventory that runs as this container on this host: a call that names the guest must not run at the same
 * time. Other containers are no resources; the lease on their device covers them.
 */
async function findGuest(db: Db, { resource }: Executor, container: unknown): Promise<ResourceRef | null> {
  const named = typeof container === 'string' ? await executableNamed(db, container) : null
  return named?.kind === 'vm' && named.host === resource.id ? { kind: 'vm', id: String(container) } : null
}

/** `why`: the reason why there is no rehearsal, for the person who decides. */
type Rehearsal = { fingerprint: string; rehearsal: Record<string, unknown> | null; why: string | null }

const notAsRoot = 'This device does everything as root, and each look would need a leave of a person.'
const notThroughHost = 'It is reached through the agent of its host, which tries nothing out inside a guest.'

/** The fingerprint of the state that the action rests on, and its rehearsal; both are read from the device now. */
async function rehearse(deps: EffectDeps, call: CallOnDevice): Promise<Rehearsal> {
  const { executor, mapped, key, incidentId } = call
  const { spec, input, capability, args } = mapped
  const { device, through } = executor
  // Which device does it, and as which user, is a part of what a person agrees to.
  const by = { device: device.id, mode: device.mode, through }
  const withoutRehearsal = (state: object, why: string | null): Rehearsal => ({
    fingerprint: digestOf(state),
    rehearsal: null,
    why,
  })
  // As root every read needs its own approval, so nothing can be found out beforehand.
  if (device.mode === 'sudo') return withoutRehearsal(by, notAsRoot)
  // A guest that is a container is read from outside, like any container; of a guest behind `pct` the host knows nothing.
  if (through === 'pct') return withoutRehearsal(by, notThroughHost)
  const state = spec.state ? await readIfAllowed(deps, call, spec.state(input)) : null
  if (!spec.rehearses || isProvenRead(executor, mapped)) return withoutRehearsal({ ...by, state }, null)
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

/** The device cannot rehearse the call, or wants approval for a rehearsal: the call itself may still be proposed. */
function isWithoutRehearsal(code: string | undefined): boolean {
  return code === 'capability_unavailable' || code === 'approval_required'
}

/**
 * What a read on the device answers: `result` is null where the thing does not exist. Null where the device wants approval
 * for the read, as for a sensitive file. Refused where it cannot be read just now.
 */
export async function readIfAllowed(
  deps: EffectDeps,
  { executor, key, incidentId }: Omit<CallOnDevice, 'mapped'>,
  look: Probe,
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

/** The state is the one that the person saw: read once more, just before the write. */
export async function requireSameState(
  deps: EffectDeps,
  call: CallOnDevice,
  ifMatch: string | undefined,
): Promise<void> {
  if (ifMatch === undefined) return
  const { fingerprint } = await rehearse(deps, call)
  if (isSameFingerprint(ifMatch, fingerprint)) return
  const detail = `${call.executor.resource.id} is not as it was when this was decided. Nothing was done.`
  throw new EffectRefused('state_changed', 'STATE_CHANGED', detail, { fields: { currentFingerprint: fingerprint } })
}
