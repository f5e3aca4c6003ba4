import { editOf } from '../../db/approvals/find.ts'
import type { Db } from '../../db/connect.ts'
import { executableNamed } from '../../db/devices.ts'
import { eventByStepKey } from '../../db/events.ts'
import { incidentById } from '../../db/incidents.ts'
import { digestOf } from '../../domain/digest.ts'
import type { ResourceRef } from '../../domain/resource.ts'
import type { Preparation } from '../../domain/tool.ts'
import type { Proof } from '../../domain/verification.ts'
import { specNamed } from '../../mesh/registry.ts'
import type { Probe as Look } from '../../mesh/specs/spec.ts'
import type { ApiDeps } from '../deps.ts'
import { notFound, Problem } from '../problem.ts'
import { deviceProblem, unreachable } from './answers.ts'
import { askDevice } from './ask-device.ts'
import { isProvenLook, rootReadsOf, whyAsked, whyUnmet } from './asked.ts'
import { deadlineMs, lookKey, type Mapped, mapCall, readInput } from './call.ts'
import { type Executor, requireExecutor } from './executor.ts'
import { proofOf } from './promise.ts'

export type DevicePreparation = Pick<Preparation, 'stateFingerprint' | 'asks' | 'rootReads'> & {
  dryRun: Preparation['dryRun'] & { proof: Proof }
  resource: Executor['resource']
  device: string
  /** What it touches besides: a guest of the inventory that the call names by its container. */
  touches?: ResourceRef[]
}

type Proposed = { tool: string; arguments: Record<string, unknown>; incidentId: string }

/**
 * The call that a model proposed and a run is about to judge, as rows have it: its arguments, or what a person made of them. Nothing
 * is taken from whoever asks but the place in the log.
 */
export async function proposedCall(db: Db, stepKey: string): Promise<Proposed> {
  const [, incidentId, attempt, turn, call] =
    /^(inc_[0-9a-z]{26})\.(\d{1,6}):(\d{1,6}):tool_started:(\d{1,4})$/.exec(stepKey) ?? []
  const none = notFound(`proposed call ${stepKey}`)
  if (!incidentId) throw none
  const incident = await incidentById(db, incidentId)
  if (incident?.attempt !== Number(attempt)) throw none
  const answered = await eventByStepKey(db, `${incidentId}.${attempt}:${turn}:model_answered:0`)
  const proposed = answered?.kind === 'model_answered' ? answered.metadata.calls[Number(call)] : undefined
  if (!proposed || proposed.secret) throw none
  const edit = await editOf(db, { incidentId, attempt: Number(attempt), callId: proposed.id })
  const args = edit?.arguments ?? proposed.arguments
  if (args === null) throw none
  return { tool: proposed.tool, arguments: args, incidentId }
}

/** What a proposed call would do to the resource: tried in a throw-away copy where the device can, else in words. */
export async function prepareCall(deps: ApiDeps, id: string, stepKey: string): Promise<DevicePreparation> {
  const proposed = await proposedCall(deps.db, stepKey)
  const spec = specNamed(proposed.tool)
  if (spec?.name !== proposed.tool) throw notFound(`device tool ${proposed.tool}`)
  const { on: _, reason: __, ...given } = proposed.arguments
  const input = readInput(spec, given)
  const executor = await requireExecutor(deps.db, id)
  const mapped = mapCall(executor, spec, input)
  const asks =
    whyAsked(executor.device, mapped) ??
    (await whyUnmet(deps, executor, mapped, {
      ...{ key: stepKey, incidentId: proposed.incidentId, deadlineMs: deadlineMs(executor, true) },
    }))
  const tried =
    asks || spec.effect === 'write' ? await tryOut(deps, executor, mapped, stepKey, proposed.incidentId) : untried
  const { resource, device, through } = executor
  // Through a host the words become another command, and whoever runs it is not the device.
  const rootReads = through === null ? rootReadsOf(device, mapped.capability) : undefined
  const guest = await guestNamed(deps.db, executor, tried.rehearsal?.container ?? input.container)
  return {
    resource,
    device: device.id,
    ...(guest && { touches: [guest] }),
    stateFingerprint: tried.fingerprint,
    ...(asks && { asks }),
    ...(rootReads?.length && { rootReads }),
    dryRun: {
      possible: tried.rehearsal !== null && tried.rehearsal.tried !== false,
      summary: `${spec.summary(input)}, on ${resource.id}`,
      proof: proofOf(executor, { spec, input }),
      details: {
        on: resource,
        device: device.id,
        mode: device.mode,
        capability: mapped.capability,
        args: mapped.args,
        ...(through && { through }),
        ...(tried.rehearsal && { rehearsal: tried.rehearsal }),
        ...(tried.why && { notRehearsed: tried.why }),
      },
    },
  }
}

/**
 * The guest of the inventory that runs as this container on this host: a call that names the guest must not run at the same time. Other containers are no resources, and the lease on their device covers them.
 */
async function guestNamed(db: Db, { resource }: Executor, container: unknown): Promise<ResourceRef | null> {
  const named = typeof container === 'string' ? await executableNamed(db, container) : null
  return named?.kind === 'vm' && named.host === resource.id ? { kind: 'vm', id: String(container) } : null
}

type Tried = { fingerprint: string; rehearsal: Record<string, unknown> | null; why: string | null }
const untried: Tried = { fingerprint: '', rehearsal: null, why: null }

/** The state the action rests on, and its rehearsal; both looked at afresh. */
export async function tryOut(
  deps: ApiDeps,
  executor: Executor,
  mapped: Mapped,
  key: string,
  incidentId: string,
): Promise<Tried> {
  const { spec, input } = mapped
  const { device, through } = executor
  // Who would do it, and as whom, is a part of what a person agrees to.
  const by = { device: device.id, mode: device.mode, through }
  // As root every look is asked about by itself: there is nothing to be found out beforehand.
  if (device.mode === 'sudo') return { ...untried, fingerprint: digestOf(by), why: asRoot }
  // A guest that is a container is looked at from outside, like any; of one behind `pct` the host can tell nothing.
  if (through === 'pct') return { ...untried, fingerprint: digestOf(by), why: throughItsHost }
  const state = spec.state ? await lookIfAllowed(deps, executor, spec.state(input), key, incidentId) : null
  if (!spec.rehearses || isProvenLook(executor, mapped)) return { ...untried, fingerprint: digestOf({ ...by, state }) }
  const heard = await askDevice(deps, executor.device, {
    ...{ key: lookKey(key, 'rehearse'), capability: mapped.capability, args: mapped.args, rehearse: true, incidentId },
    deadlineMs: deadlineMs(executor, true),
  })
  if (heard.kind !== 'answer') throw unreachable(executor.device.id, mapped.capability, heard.reason)
  const { answer } = heard
  if (!answer.ok && !isNoRehearsal(answer.error?.code)) throw deviceProblem(mapped.capability, answer)
  const { rests_on: rests, ...rest } = answer.result ?? {}
  return {
    fingerprint: digestOf({ ...by, state, diff: rest.diff ?? null, ...(rests !== undefined && { rests }) }),
    rehearsal: answer.ok ? { ...rest, truncated: answer.truncated } : null,
    why: answer.ok ? null : (answer.error?.message ?? null),
  }
}

const asRoot = 'This device does everything as root, and each look would need a leave of a person.'
const throughItsHost = 'It is reached through the agent of its host, which tries nothing out inside a guest.'

/** The device cannot rehearse it, or would want to be asked for that: the action itself may still be asked about. */
const isNoRehearsal = (code: string | undefined): boolean =>
  code === 'capability_unavailable' || code === 'approval_required'

/**
 * What a look tells: `result` null where there is no such thing; null where the device would want to be asked for it, as for a
 * sensitive file. Thrown: it could not be looked at just now.
 */
export async function lookIfAllowed(
  deps: ApiDeps,
  executor: Executor,
  look: Look,
  key: string,
  incidentId: string,
): Promise<{ result: Record<string, unknown> | null } | null> {
  const heard = await askDevice(deps, executor.device, {
    ...{ key: lookKey(key, 'look'), ...look, incidentId, deadlineMs: deadlineMs(executor, true) },
  })
  if (heard.kind !== 'answer') throw unreachable(executor.device.id, look.capability, heard.reason)
  const { answer } = heard
  if (answer.error?.code === 'not_found') return { result: null }
  if (answer.error?.code === 'approval_required') return null
  if (!answer.ok) throw deviceProblem(look.capability, answer)
  return { result: answer.result ?? {} }
}

/** The state is the one that the person saw: looked at once more, just before. */
export async function requireSameState(
  deps: ApiDeps,
  executor: Executor,
  mapped: Mapped,
  at: { key: string; incidentId: string; ifMatch: string | undefined },
): Promise<void> {
  if (at.ifMatch === undefined) return
  const { fingerprint } = await tryOut(deps, executor, mapped, at.key, at.incidentId)
  if (at.ifMatch.replace(/^(?:W\/)?"(.*)"$/, '$1') === fingerprint) return
  const detail = `${executor.resource.id} is not as it was when this was decided. Nothing was done.`
  throw new Problem(412, 'STATE_CHANGED', detail, { fields: { currentFingerprint: fingerprint } })
}
