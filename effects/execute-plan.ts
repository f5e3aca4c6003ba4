import type { PlatformClient } from '../clients/platform.ts'
import { vmsRestartedElsewhere } from '../db/inventory/deaths.ts'
import { storeProposal } from '../db/inventory/proposals.ts'
import { cancelAsked, notePlanOfEffect } from '../db/writes/effects.ts'
import type { PlacementProblem, PlanStep, Proposal } from '../domain/placement.ts'
import {
  type ClusterState,
  describeDrift,
  describeReplacement,
  planDigest,
  stateAfter,
  stateFingerprint,
  withVmFrom,
} from '../placement/plan.ts'
import { solve } from '../placement/solve.ts'
import { verifyStep } from '../placement/verify.ts'
import { saidWith, whyNotNow } from './dead-hosts.ts'
import type { EffectDeps, Ending } from './effect.ts'
import { followWrite } from './follow-write.ts'
import {
  buildPlanEnding,
  type PlanActor,
  readCurrentState,
  type StepOutcome,
  type StepStatus,
  type StoredPlan,
  writeStepFinished,
  writeStepStarted,
} from './plan-state.ts'
import { toEnding } from './platform.ts'

/** Number of parallel migrations that the network between hosts carries easily. */
const parallelSteps = 4
/** Number of changes by others during a plan after which the plan moves no more VMs. */
const maxReplans = 3

type PlanRun = {
  deps: EffectDeps
  platform: PlatformClient
  plan: Proposal
  problem: PlacementProblem
  by: PlanActor
  /** The platform's state at the decision, which tells which VM and host a name meant then. */
  approved: ClusterState
  /** The platform's state that is expected now: the approved one, changed by the steps since. */
  expected: ClusterState
  /** Steps that have not ended. Each step lists the steps that must end before it. */
  queue: PlanStep[]
  outcomes: Map<number, StepOutcome>
  /** Whether the outcome of a step is unknown. */
  hasUnknown: boolean
  replans: number
  nextProposalId: string | null
  /** Hosts that the approvers stated to be off. */
  hostIsOff: readonly string[]
  /**
   * VMs that the platform starts by itself, on hosts that it chooses. No request is sent for these.
   */
  byItself: ReadonlySet<string>
}

/**
 * Carries out a plan. Steps whose needs are met run in parallel, up to four, each under its own key
 * and between two rows of the incident. The platform is read before each step. A change that this
 * plan did not make stops the remaining steps; done steps stay, and a new plan is made. A new plan
 * that has only approved moves continues; any other new plan waits for a new decision. A failed
 * step stops only the steps that need it. Returns null if the outcome of a step is unknown.
 *
 * `approved`: the state that was compared with the state at the decision. `resumed`: the process
 * that began the plan died; the platform's journal tells which steps that process started. With
 * `isLate`, no further step is started.
 */
export async function executePlan(
  deps: EffectDeps,
  platform: PlatformClient,
  { proposal: plan, problem }: StoredPlan,
  by: PlanActor,
  start: { approved: ClusterState } | { resumed: { isLate: boolean } },
): Promise<Ending | null> {
  const resumed = 'resumed' in start ? start.resumed : null
  // Uses the state that was compared with the decision, because a later change was not approved.
  const approved = 'approved' in start ? start.approved : problem
  const run: PlanRun = {
    deps,
    platform,
    plan,
    problem,
    by,
    approved,
    expected: approved,
    queue: plan.steps,
    outcomes: new Map(),
    hasUnknown: false,
    replans: 0,
    nextProposalId: null,
    hostIsOff: await saidWith(deps, by.judged),
    byItself: await vmsRestartedElsewhere(
      deps.db,
      plan.steps.filter(({ action }) => action === 'start').map(({ vm }) => vm),
    ),
  }
  if (resumed) await readJournal(run)
  else await notePlanOfEffect(deps.db, by.key, plan.id)
  if (resumed?.isLate) await skipRest(run, 'the process that ran this plan ended too long ago to continue the plan')
  for (let ready = await readySteps(run); ready.length > 0; ready = await readySteps(run)) {
    await Promise.all(ready.map((step) => runStep(run, step)))
  }
  return run.hasUnknown ? null : buildPlanEnding([...run.outcomes.values()], plan.steps, run.nextProposalId)
}

/** Returns the steps that may start now; empty if all steps have ended or were skipped. */
async function readySteps(run: PlanRun): Promise<PlanStep[]> {
  for (;;) {
    await skipBlocked(run)
    const ready = run.queue.filter(({ needs }) => needs.every((need) => run.outcomes.get(need)?.status === 'OK'))
    if (ready.length === 0) return []
    if (run.by.judged && (await cancelAsked(run.deps.db, run.by.judged))) {
      await skipRest(run, 'the investigation was stopped')
      return []
    }
    const current = await readCurrentState(run.deps)
    if (await skipReplaced(run, current)) continue
    if (await takeRestarts(run, current)) continue
    const here = { ...run.problem, ...current }
    const changes = describeDrift(run.expected, current)
    const unready = ready
      .map((step) => ({ step, reason: verifyStep(here, step) }))
      .find(({ reason }) => reason !== null)
    if (changes.length === 0 && !unready) {
      // Puts the platform's own steps last, because it may take minutes to start its VMs.
      const own = ready.filter(({ vm }) => !run.byItself.has(vm))
      const next = own.length > 0 ? own.slice(0, parallelSteps) : ready
      if (await skipUnconfirmed(run, next)) continue
      return next
    }
    const why = changes.join('; ') || `step ${unready?.step.step} cannot begin: ${unready?.reason}`
    run.expected = current
    if (!(await replan(run, here, why))) return []
  }
}

/**
 * Makes a new plan. Returns true if the new plan is part of the approved plan and replaces it;
 * false if the remaining steps are skipped.
 */
async function replan(run: PlanRun, here: PlacementProblem, why: string): Promise<boolean> {
  run.replans += 1
  if (run.replans > maxReplans) {
    await skipRest(run, `${why}; the plan was already replanned ${maxReplans} times`)
    return false
  }
  const { standing: _, ...next } = await solve(here, { engine: run.deps.placement.engine })
  const approved = new Map(run.queue.map((step) => [`${step.action} ${step.vm} ${step.to}`, step.step]))
  const numbers = next.steps.map(({ action, vm, to }) => approved.get(`${action} ${vm} ${to}`))
  if (next.steps.length > 0 && numbers.every((number) => number !== undefined)) {
    const kept = new Set(numbers)
    const dropped = run.queue.filter(({ step }) => !kept.has(step))
    run.queue = next.steps.map((step, index) => ({
      ...step,
      step: numbers[index] as number,
      needs: step.needs.map((need) => numbers[need - 1] as number),
    }))
    for (const step of dropped) await recordOutcome(run, step, 'SKIPPED', `the step is not needed any more: ${why}`)
    return true
  }
  if (next.steps.length > 0) run.nextProposalId = await storeNextProposal(run, here, next)
  const then = run.nextProposalId
    ? `proposal ${run.nextProposalId} replans the rest and needs its own decision`
    : `a new plan for the rest: ${next.state}`
  await skipRest(run, `${why}; ${then}`)
  return false
}

async function storeNextProposal(
  { deps, plan }: PlanRun,
  here: PlacementProblem,
  next: Omit<Awaited<ReturnType<typeof solve>>, 'standing'>,
): Promise<string> {
  const { incidentId, intent, hostIds } = plan
  const stored = await storeProposal(
    deps.db,
    {
      incidentId,
      intent,
      hostIds,
      fromInventory: true,
      ...next,
      standing: null,
      planDigest: planDigest(next.steps),
      stateFingerprint: stateFingerprint(here),
    },
    here,
  )
  return stored.id
}

async function runStep(run: PlanRun, step: PlanStep): Promise<void> {
  const { deps, platform, plan, by } = run
  await writeStepStarted(deps.db, plan, by, step)
  const ending = await sendStep(platform, step, getStepKey(run, step))
  await concludeStep(run, step, ending)
}

/** Returns the host on which the platform started a step's VM by itself; null if it did not. */
function findRestart(run: PlanRun, { action, vm }: PlanStep, current: ClusterState): string | null {
  const found = current.vms.find((each) => each.vm === vm)
  return action === 'start' && run.byItself.has(vm) && found?.running ? found.host : null
}

/**
 * Records VMs that the platform started before their turn, beginning with VMs on their forecast
 * host. Returns whether there were any.
 */
async function takeRestarts(run: PlanRun, current: ClusterState): Promise<boolean> {
  const found = run.queue.flatMap((step) => {
    const host = findRestart(run, step, current)
    return host === null ? [] : [{ step, host }]
  })
  const isOther = ({ step, host }: (typeof found)[number]) => Number(host !== step.to)
  for (const { step, host } of found.toSorted((a, b) => isOther(a) - isOther(b))) {
    await writeStepStarted(run.deps.db, run.plan, run.by, step)
    await recordRestart(run, step, host, current)
  }
  return found.length > 0
}

/**
 * Records a start by the platform. A host other than the forecast host is accepted if the plan's
 * rules hold there, with the starts recorded so far.
 */
async function recordRestart(run: PlanRun, step: PlanStep, host: string, current: ClusterState): Promise<void> {
  const taken = { ...step, to: host }
  const fault = verifyStep({ ...run.problem, ...run.expected }, taken)
  run.expected = withVmFrom(run.expected, step.vm, current)
  const where = host === step.to ? `on ${host}, as forecast` : `on ${host} and not on ${step.to} as forecast`
  if (fault === null) return await recordOutcome(run, taken, 'OK', `the platform started the VM ${where}`)
  const broken = `the platform started the VM ${where}; the VM runs, but breaks the plan's rules there (${fault})`
  await recordOutcome(run, taken, 'FAILED', broken)
}

/** Concludes a step by the platform's answer and by where the VM is now. */
async function concludeStep(run: PlanRun, step: PlanStep, ending: Ending | null): Promise<void> {
  const current = await readCurrentState(run.deps).catch(() => null)
  const found = current?.vms.find(({ vm }) => vm === step.vm)
  const restart = current && findRestart(run, step, current)
  if (current && restart && restart !== step.to) return await recordRestart(run, step, restart, current)
  const isThere = found?.running === true && found.host === step.to
  run.hasUnknown ||= ending === null && !isThere
  if (ending?.status === 'done' && (isThere || current === null)) {
    run.expected = stateAfter(run.expected, step)
    await recordOutcome(run, step, 'OK', ending.detail)
    return
  }
  if (current) run.expected = withVmFrom(run.expected, step.vm, current)
  if (ending === null && isThere)
    return await recordOutcome(run, step, 'OK', 'the platform did not answer, but the VM runs there')
  const where = found ? `${found.running ? 'runs' : 'is stopped'} on ${found.host ?? 'no host'}` : 'could not be read'
  const said = ending === null ? 'it is not known whether the step took effect' : ending.detail
  await recordOutcome(run, step, 'FAILED', ending?.status === 'done' ? `${said}, but ${step.vm} ${where}` : said)
}

async function recordOutcome(run: PlanRun, step: PlanStep, status: StepStatus, detail: string): Promise<void> {
  const outcome: StepOutcome = { step: step.step, vm: step.vm, to: step.to, status, detail }
  run.queue = run.queue.filter((each) => each.step !== step.step)
  run.outcomes.set(step.step, outcome)
  await writeStepFinished(run.deps.db, run.plan, run.by, outcome)
}

/** Skips steps that need a step which failed or was skipped. */
async function skipBlocked(run: PlanRun): Promise<void> {
  for (const step of run.queue) {
    const missing = step.needs.find((need) => ['FAILED', 'SKIPPED'].includes(run.outcomes.get(need)?.status ?? ''))
    if (missing !== undefined)
      await recordOutcome(run, step, 'SKIPPED', `this step needs step ${missing}, which was not done`)
  }
}

/**
 * Skips steps whose VM or host is not the approved machine, because another machine with the same
 * name needs a new decision. Returns whether any step was skipped.
 */
async function skipReplaced(run: PlanRun, current: ClusterState): Promise<boolean> {
  const replaced = run.queue.flatMap((step) => {
    const why = describeReplacement(run.approved, current, step)
    return why === null ? [] : [{ step, why: `${why}: this state differs from the approved state` }]
  })
  for (const { step, why } of replaced) await recordOutcome(run, step, 'SKIPPED', why)
  return replaced.length > 0
}

/**
 * Skips starts of VMs of a host that somebody saw alive since the decision, or whose death no
 * witness confirms any more. While witnesses disagree, all remaining steps are skipped. Returns
 * whether a step of `ready` was skipped, or no step is left.
 */
async function skipUnconfirmed(run: PlanRun, ready: readonly PlanStep[]): Promise<boolean> {
  const dead = run.approved.hosts.filter(({ state }) => state === 'dead').map(({ name }) => name)
  // Checks all remaining steps, because a migration that makes room for the VM of a disputed host
  // is useless.
  const bar = await whyNotNow(run.deps, run.queue, run.hostIsOff, dead)
  if (!bar) return false
  const isBarred = ({ action, from }: PlanStep) => action === 'start' && bar.hosts.includes(from ?? '')
  const barred = bar.code === 'WITNESSES_DISAGREE' ? run.queue : run.queue.filter(isBarred)
  for (const step of barred) await recordOutcome(run, step, 'SKIPPED', bar.reason)
  return barred.some(({ step }) => ready.some((each) => each.step === step)) || run.queue.length === 0
}

async function skipRest(run: PlanRun, why: string): Promise<void> {
  for (const step of run.queue) await recordOutcome(run, step, 'SKIPPED', why)
}

/** Reads what the dead process had done. The platform's journal knows each step by its key. */
async function readJournal(run: PlanRun): Promise<void> {
  for (const step of run.plan.steps) {
    const answer = await run.platform.effect(getStepKey(run, step))
    if (!answer) continue
    const ending = toEnding(answer) ?? (await followWrite(run.platform, getStepKey(run, step), async () => answer))
    await concludeStep(run, step, ending)
  }
}

function getStepKey({ by }: PlanRun, { step }: PlanStep): string {
  return `${by.key}:${step}`
}

async function sendStep(
  platform: PlatformClient,
  { action, vm, from, to }: PlanStep,
  key: string,
): Promise<Ending | null> {
  if (action === 'start') return await followWrite(platform, key, () => platform.startVm(vm, to, key))
  if (from === null) return { status: 'failed', detail: 'the migration names no host from which it starts', result: {} }
  return await followWrite(platform, key, () => platform.migrateVm(vm, { from, to }, key))
}
