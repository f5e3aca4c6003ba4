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

/** As many migrations at once as a network of hosts carries without noticing. */
const parallelSteps = 4
/** A platform that changes more often than this while a plan runs is no place to move VMs about. */
const maxReplans = 3

type PlanRun = {
  deps: EffectDeps
  platform: PlatformClient
  plan: Proposal
  problem: PlacementProblem
  by: PlanActor
  /** The state for which this was decided: it says which VM and host a name meant then. */
  approved: ClusterState
  /** The state as it should be now: the approved one, and the steps that were done since. */
  expected: ClusterState
  /** Steps that have not ended, with the steps that each one needs. */
  queue: PlanStep[]
  outcomes: Map<number, StepOutcome>
  /** The outcome of some step is unknown. */
  hasUnknown: boolean
  replans: number
  nextProposalId: string | null
  /** Hosts of which those who approved say that they are off. */
  hostIsOff: readonly string[]
  /** VMs that the platform starts: nothing is sent for them, and it chooses where they come up. */
  byItself: ReadonlySet<string>
}

/**
 * Carries a plan out: steps whose needs are met run at once, up to four, each under its key and
 * between two rows of the incident. The platform is read before each. A change that this plan did
 * not make stops the remaining steps; done ones stay, and a new plan is made. A new plan that only
 * moves what was approved continues, any other waits for a new decision. A failed step stops only
 * its dependents. Null: some step's outcome is unknown.
 *
 * `approved`: the state compared with the decision's. `resumed`: the process that began the plan
 * died. The platform's journal says which steps it started; `isLate` starts no further one.
 */
export async function executePlan(
  deps: EffectDeps,
  platform: PlatformClient,
  { proposal: plan, problem }: StoredPlan,
  by: PlanActor,
  start: { approved: ClusterState } | { resumed: { isLate: boolean } },
): Promise<Ending | null> {
  const resumed = 'resumed' in start ? start.resumed : null
  // The compared state counts: a later change was not approved.
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
  if (resumed?.isLate) await skipRest(run, 'the process that carried this out has ended, too long ago to go on')
  for (let ready = await readySteps(run); ready.length > 0; ready = await readySteps(run)) {
    await Promise.all(ready.map((step) => runStep(run, step)))
  }
  return run.hasUnknown ? null : buildPlanEnding([...run.outcomes.values()], plan.steps, run.nextProposalId)
}

/** Steps that may start now; empty when all have ended or the rest was skipped. */
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
      // Room is made before the platform is waited for, which may take it minutes.
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

/** True: the new plan is a part of the approved one and replaces it. False: the rest skipped. */
async function replan(run: PlanRun, here: PlacementProblem, why: string): Promise<boolean> {
  run.replans += 1
  if (run.replans > maxReplans) {
    await skipRest(run, `${why}; it has been planned again ${maxReplans} times already`)
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
    for (const step of dropped) await recordOutcome(run, step, 'SKIPPED', `not needed any more: ${why}`)
    return true
  }
  if (next.steps.length > 0) run.nextProposalId = await storeNextProposal(run, here, next)
  const then = run.nextProposalId
    ? `proposal ${run.nextProposalId} plans the rest again and needs another decision`
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

/** The place where the platform started a step's VM; null if not, or somebody is asked. */
function findRestart(run: PlanRun, { action, vm }: PlanStep, current: ClusterState): string | null {
  const found = current.vms.find((each) => each.vm === vm)
  return action === 'start' && run.byItself.has(vm) && found?.running ? found.host : null
}

/**
 * Records starts by the platform before their turn, forecast ones first. Answers whether there were
 * any.
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

/** A host other than forecast is as good if the plan's rules hold there, beside earlier starts. */
async function recordRestart(run: PlanRun, step: PlanStep, host: string, current: ClusterState): Promise<void> {
  const taken = { ...step, to: host }
  const fault = verifyStep({ ...run.problem, ...run.expected }, taken)
  run.expected = withVmFrom(run.expected, step.vm, current)
  const where = host === step.to ? `on ${host}, as forecast` : `on ${host}, not on ${step.to}, as forecast`
  if (fault === null) return await recordOutcome(run, taken, 'OK', `the platform started it ${where}`)
  const broken = `the platform started it ${where}: there the rules of the plan do not hold (${fault}), and it runs`
  await recordOutcome(run, taken, 'FAILED', broken)
}

/** Compares what the platform said with where the VM is now. */
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
  if (ending === null && isThere) return await recordOutcome(run, step, 'OK', 'no answer came, and it runs there')
  const where = found ? `${found.running ? 'runs' : 'is stopped'} on ${found.host ?? 'no host'}` : 'could not be read'
  const said = ending === null ? 'it cannot be told whether this took effect' : ending.detail
  await recordOutcome(run, step, 'FAILED', ending?.status === 'done' ? `${said}, but ${step.vm} ${where}` : said)
}

async function recordOutcome(run: PlanRun, step: PlanStep, status: StepStatus, detail: string): Promise<void> {
  const outcome: StepOutcome = { step: step.step, vm: step.vm, to: step.to, status, detail }
  run.queue = run.queue.filter((each) => each.step !== step.step)
  run.outcomes.set(step.step, outcome)
  await writeStepFinished(run.deps.db, run.plan, run.by, outcome)
}

/** Skips steps that need a failed or skipped one. */
async function skipBlocked(run: PlanRun): Promise<void> {
  for (const step of run.queue) {
    const missing = step.needs.find((need) => ['FAILED', 'SKIPPED'].includes(run.outcomes.get(need)?.status ?? ''))
    if (missing !== undefined) await recordOutcome(run, step, 'SKIPPED', `it needs step ${missing}, which was not done`)
  }
}

/**
 * Skips steps whose VM or host is not the approved one: another machine of the name needs a new
 * decision. Answers whether any was skipped.
 */
async function skipReplaced(run: PlanRun, current: ClusterState): Promise<boolean> {
  const replaced = run.queue.flatMap((step) => {
    const why = describeReplacement(run.approved, current, step)
    return why === null ? [] : [{ step, why: `${why}: it is not what was approved` }]
  })
  for (const { step, why } of replaced) await recordOutcome(run, step, 'SKIPPED', why)
  return replaced.length > 0
}

/**
 * Skips starts of a host's VMs that somebody saw alive since the decision, or nobody confirms any
 * more. While witnesses disagree nothing is written either. Answers whether any step was skipped.
 */
async function skipUnconfirmed(run: PlanRun, ready: readonly PlanStep[]): Promise<boolean> {
  const dead = run.approved.hosts.filter(({ state }) => state === 'dead').map(({ name }) => name)
  // For all that is left: a migration to make room for a disputed host's VM is for nothing.
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

/** Reads what the process that died had done: the platform's journal knows each step by its key. */
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
  if (from === null) return { status: 'failed', detail: 'a migration without a start', result: {} }
  return await followWrite(platform, key, () => platform.migrateVm(vm, { from, to }, key))
}
