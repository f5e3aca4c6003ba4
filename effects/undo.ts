import { proposalById } from '../db/inventory/proposals.ts'
import {
  describeWrite,
  type LoggedWrite,
  type UndoStanding,
  undoOfRun,
  undosOf,
  writeByKey,
} from '../db/writes/undo.ts'
import type { IncidentEvent } from '../domain/event.ts'
import { runJobTool } from '../domain/job.ts'
import { vmTools } from '../domain/platform.ts'
import { inventoryKind } from '../domain/registry.ts'
import type { Preparation } from '../domain/tool.ts'
import {
  compareLeft,
  type DeclaredUndo,
  formatMovedOn,
  jobLeft,
  type LeftBehind,
  type UndoLook,
  vmLeft,
} from '../domain/undo.ts'
import { comparesState, toDeviceCall } from '../mesh/registry.ts'
import { stateFingerprint } from '../placement/plan.ts'
import { tools } from '../tools/registry.ts'
import { requireExecutor } from './devices/executor.ts'
import { prepareDeviceCall, readIfAllowed } from './devices/prepare.ts'
import { type EffectDeps, EffectRefused } from './effect.ts'
import { observeJob, prepareJob } from './jobs/check.ts'
import { movesBack, storePlanBack } from './plan-back.ts'
import { requireUnchanged, type StoredPlan } from './plan-state.ts'
import { prepareRepair, readVm } from './vm-repair.ts'

/**
 * Undoes one write. The row of the write (`undo` of `tool_finished`) has the call that undoes the
 * write, and the state that the write left. An undo is valid for this state only. The state is
 * compared when a person asks for the undo, when the kernel judges, just before the undo is
 * accepted, and by the device if it can (`if_head`, `if_run`).
 */

/** A write with its undo, as the write's row recorded it. */
export type UndoableWrite = LoggedWrite & { undo: DeclaredUndo }

/** The reason why a write cannot be undone, found from the rows of the write alone. */
type WhyNot = { code: string; detail: string }

export function whyNoUndo(write: LoggedWrite, undos: readonly UndoStanding[]): WhyNot | null {
  return whyNotDone(write) ?? whyNotDeclared(write) ?? whyAgain(undos)
}

function whyNotDone({ started, finished }: LoggedWrite): WhyNot | null {
  const { tool } = started.metadata
  if (!finished) return { code: 'WRITE_UNDER_WAY', detail: `${tool} is still running: wait until it ends.` }
  const { outcome, result } = finished.metadata
  if (outcome === 'failed') {
    const why = result.error?.message ?? 'it failed'
    return { code: 'NOT_CARRIED_OUT', detail: `${tool} did not run (${why}), so there is nothing to undo.` }
  }
  if (outcome === 'done') return null
  return { code: 'OUTCOME_UNKNOWN', detail: `The result of ${tool} is not known. Check the target yourself.` }
}

function whyNotDeclared({ started, finished }: LoggedWrite): WhyNot | null {
  const { tool } = started.metadata
  const undo = finished?.metadata.undo
  if (undo && !('none' in undo)) return null
  if (undo) return { code: 'NO_UNDO', detail: `This ${tool} has no undo: ${undo.none}.` }
  if (!tools.get(tool)?.undo) return { code: 'NO_UNDO', detail: `${tool} has no undo: reverse it by hand.` }
  const detail = `The row of this ${tool} does not record the state that it left. An older version wrote the row, or a person's data was erased from it.`
  return { code: 'UNDO_NOT_RECORDED', detail }
}

function whyAgain(undos: readonly UndoStanding[]): WhyNot | null {
  const by = (standing: UndoStanding['standing']) => undos.find((each) => each.standing === standing)?.incidentId
  const [undone, unclear, underWay] = [by('undone'), by('unclear'), by('under_way')]
  if (undone)
    return { code: 'UNDONE_ALREADY', detail: `${undone} undid this write. To reverse the undo, undo ${undone}.` }
  if (unclear)
    return {
      code: 'UNDO_UNCLEAR',
      detail: `${unclear} may have undone this write: check that incident and the target.`,
    }
  if (underWay)
    return {
      code: 'UNDO_UNDER_WAY',
      detail: `${underWay} is already undoing this write. Wait for that undo, or deny it in that incident.`,
    }
  return null
}

/** Returns the write if its rows allow an undo; otherwise refuses with the reason. */
export async function requireUndoable({ db }: Pick<EffectDeps, 'db'>, write: LoggedWrite): Promise<UndoableWrite> {
  const why = whyNoUndo(write, await undosOf(db, write.started.stepKey ?? ''))
  if (why) throw new EffectRefused('conflict', why.code, why.detail)
  return { ...write, undo: write.finished?.metadata.undo as DeclaredUndo }
}

/** Compares the state now with the state that the write left. */
export async function lookAtLeft(deps: EffectDeps, { started, undo }: UndoableWrite): Promise<UndoLook> {
  return compareLeft(undo.left, await readLeft(deps, started, undo), started.incidentId)
}

async function readLeft(
  deps: EffectDeps,
  { incidentId, stepKey, metadata: { tool, arguments: args } }: IncidentEvent<'tool_started'>,
  { files = [], arguments: undone }: DeclaredUndo,
): Promise<LeftBehind | null> {
  const call = toDeviceCall(tool, args)
  if (call?.spec.undo) {
    const executor = await requireExecutor(deps.db, String(args.on))
    const at = { executor, key: stepKey ?? '', incidentId }
    const seen = await readIfAllowed(deps, at, call.spec.undo.look(call.args))
    return seen && call.spec.undo.facts(seen.result, call.args, files)
  }
  if (tool === runJobTool) {
    const seen = await untilKnown(() => observeJob(deps, named(args), `undo ${stepKey}`))
    return seen && jobLeft(String(args.job), seen.holds ? null : seen.observed)
  }
  const moved = movesBack.safeParse(undone)
  if (moved.success) return await readPlaces(deps, moved.data.moves)
  if (Object.values<string>(vmTools).includes(tool)) {
    const id = String(args.id)
    const vm = await readVm(deps, id)
    return vm && vmLeft(id, vm)
  }
  return null
}

async function readPlaces(deps: EffectDeps, moves: readonly { vm: string }[]): Promise<LeftBehind | null> {
  const seen = await Promise.all(moves.map(async ({ vm }) => ({ vm, now: await readVm(deps, vm) })))
  if (seen.some(({ now }) => now === null)) return null
  // Ignores the start time: a migration does not restart the VM, so the time says nothing about the
  // plan.
  return Object.assign({}, ...seen.map(({ vm, now }) => now && vmLeft(vm, { ...now, startedAt: null })))
}

/**
 * Returns the call that undoes the write now. For a plan, the call runs a new plan for the current
 * state, which moves the VMs back.
 */
export async function resolveUndo(
  deps: EffectDeps,
  { started, undo }: UndoableWrite,
): Promise<Pick<DeclaredUndo, 'tool' | 'arguments'>> {
  const moved = movesBack.safeParse(undo.arguments)
  if (!moved.success) return undo
  const proposal_id = await storePlanBack(deps, { ...moved.data, incidentId: started.incidentId })
  return { tool: undo.tool, arguments: { proposal_id } }
}

const named = ({ job, kind, id }: Record<string, unknown>) => ({
  name: String(job),
  kind: inventoryKind.parse(kind),
  id: String(id),
})

const answerWithinMs = 60_000

/**
 * Asks until there is an answer: a job's check continues after a request, and a later request takes
 * its result. Null if the check takes too long.
 */
async function untilKnown<T>(ask: () => Promise<T | null>): Promise<T | null> {
  const untilMs = performance.now() + answerWithinMs
  for (;;) {
    const answer = await ask()
    if (answer !== null || performance.now() > untilMs) return answer
  }
}

type Prepared = Omit<Preparation, 'dryRun' | 'identity'> & { summary: string }

/** Describes what the undo would touch now, by the same dry run as for any write. */
export async function prepareUndo(
  deps: EffectDeps,
  { started }: UndoableWrite,
  { tool, arguments: args }: Pick<DeclaredUndo, 'tool' | 'arguments'>,
): Promise<Prepared> {
  const call = toDeviceCall(tool, args)
  if (call) return await prepareOnDevice(deps, started, call, String(args.on))
  if (tool === runJobTool) {
    const prepared = await untilKnown(() => prepareJob(deps, named(args), `undo ${started.stepKey}`))
    if (!prepared) throw new EffectRefused('conflict', 'NOT_PREPARED', `The check mode of ${args.job} took too long.`)
    const { dryRun, identity: _, ...rest } = prepared
    return { ...rest, summary: dryRun.summary }
  }
  const found = typeof args.proposal_id === 'string' ? await proposalById(deps.db, args.proposal_id) : null
  if (found) return await preparePlan(deps, found)
  const action = (Object.keys(vmTools) as (keyof typeof vmTools)[]).find((each) => vmTools[each] === tool)
  if (action) {
    const { dryRun, targets, stateFingerprint } = await prepareRepair(deps, action, String(args.id))
    return { targets, stateFingerprint, summary: dryRun.summary }
  }
  throw new EffectRefused('conflict', 'NO_UNDO', `${tool} cannot undo anything here.`)
}

async function prepareOnDevice(
  deps: EffectDeps,
  { incidentId, attempt, stepKey }: IncidentEvent<'tool_started'>,
  call: NonNullable<ReturnType<typeof toDeviceCall>>,
  on: string,
): Promise<Prepared> {
  const { device } = await requireExecutor(deps.db, on)
  if (!comparesState(device.health)) {
    const detail = `The agent of ${device.id} is too old to compare the state before an undo. Update the agent. Nothing was undone.`
    throw new EffectRefused('conflict', 'AGENT_TOO_OLD', detail)
  }
  const at = { incidentId, attempt, key: stepKey ?? '' }
  const { resource, touches = [], dryRun, stateFingerprint, asks } = await prepareDeviceCall(deps, on, call, at)
  return { targets: [resource, ...touches], stateFingerprint, ...(asks && { asks }), summary: dryRun.summary }
}

async function preparePlan(deps: EffectDeps, found: StoredPlan): Promise<Prepared> {
  const { proposal: plan } = found
  const state = await requireUnchanged(deps, found, plan.stateFingerprint)
  const hosts = [...new Set(plan.steps.map(({ to }) => to))].map((id) => ({ kind: 'host' as const, id }))
  const vms = plan.steps.map(({ vm: id }) => ({ kind: 'vm' as const, id }))
  return {
    targets: [...vms, ...hosts, { kind: 'proposal', id: plan.id }],
    stateFingerprint: stateFingerprint(state),
    summary: plan.steps.map(({ vm, from, to }) => `Move ${vm} from ${from} back to ${to}`).join(', '),
  }
}

/** Refuses an undo because the state changed. Names the difference and where to check it. */
export function movedOn(look: UndoLook, { started }: LoggedWrite): EffectRefused {
  const detail = formatMovedOn(
    look,
    started.metadata.targets.filter(({ kind }) => kind !== 'proposal').map(({ kind, id }) => `${id} (${kind})`),
  )
  return new EffectRefused('state_changed', 'UNDO_MOVED_ON', detail)
}

/** Checks before an undo that the state is as the write left it. Ignores any other call. */
export async function requireAsLeft(deps: EffectDeps, judged: IncidentEvent<'tool_started'> | null): Promise<void> {
  const undoes = judged && (await undoOfRun(deps.db, judged.incidentId))
  if (!undoes) return
  const write = await writeByKey(deps.db, undoes.key)
  const undo = write?.finished?.metadata.undo
  if (!write || !undo || 'none' in undo) {
    const detail = `The row of the write to undo (${undoes.incidentId}) does not exist any more. Nothing was undone.`
    throw new EffectRefused('state_changed', 'UNDO_MOVED_ON', detail)
  }
  const look = await lookAtLeft(deps, { ...write, undo })
  if (!look.isAsLeft) throw movedOn(look, write)
}

/**
 * Returns a write, and why the write may not be undone. Compares the current state if the rows have
 * an undo.
 */
export async function showUndo(deps: EffectDeps, write: LoggedWrite) {
  const undos = await undosOf(deps.db, write.started.stepKey ?? '')
  const recorded = write.finished?.metadata.undo
  const undo = recorded && !('none' in recorded) ? recorded : null
  const look = undo && (await lookAtLeft(deps, { ...write, undo }))
  const why = whyNoUndo(write, undos) ?? (look && !look.isAsLeft ? toWhy(movedOn(look, write)) : null)
  return { write, undo, look, why, said: describeWrite(write), undos }
}

const toWhy = ({ code, message }: EffectRefused): WhyNot => ({ code, detail: message })
