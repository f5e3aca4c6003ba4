import type { PlatformClient } from '../clients/platform.ts'
import { placementState, storeProposal } from '../db/proposals.ts'
import { cancelAsked, notePlanOfEffect } from '../db/steps.ts'
import type { IncidentEvent } from '../domain/event.ts'
import type { PlacementProblem, PlanStep, Proposal } from '../domain/placement.ts'
import { planDigest, stateFingerprint } from '../placement/digest.ts'
import { driftOf, replacedIn, type State, stateAfter, withVmOf } from '../placement/drift.ts'
import { solve } from '../placement/solve.ts'
import { verifyStep } from '../placement/verify.ts'
import type { ApiDeps } from './deps.ts'
import { type Ending, endingOf, platformEnding } from './platform-ending.ts'
import { noteFinished, noteStarted } from './step-rows.ts'

/** SKIPPED: never begun, for what it needs did not come about, the world has changed, or somebody said stop. */
type StepStatus = 'OK' | 'FAILED' | 'SKIPPED'
export type StepOutcome = { step: number; vm: string; to: string; status: StepStatus; detail: string }

export type Executor = { key: string; actor: string; judged: IncidentEvent<'tool_started'> | null }

/** As many migrations at once as a network of hosts bears without noticing. */
const parallelSteps = 4
/** A world that changes faster than one can plan is no place to move VMs about. */
const replansAtMost = 3

type Run = {
  deps: ApiDeps
  platform: PlatformClient
  plan: Proposal
  problem: PlacementProblem
  by: Executor
  /** The world for which this was decided: the things that it names, whatever has moved since. */
  approved: State
  /** The world as it should be now: as it was approved, and what has been done since. */
  expected: State
  /** Steps that wait for their turn, with what they need of each other. */
  queue: PlanStep[]
  outcomes: Map<number, StepOutcome>
  untold: boolean
  replans: number
  nextProposalId: string | null
}

/**
 * Carries a plan out: steps whose needs are met at once, up to four, each under a key of its own and between two rows of the
 * incident. Before any begins, the world is read. Somebody else's change stops the rest, what is done stays, and a new plan is
 * made; if that one moves nothing that was not approved, it is gone on with, else it is stored for a new decision. A step that
 * fails stops only what needs it. Null: of some step it cannot be told what became of it.
 *
 * `approved`: the state that was compared with the one that was decided for. `resumed`: the process that began it died. The platform's journal says which steps it began; after a long time no further step is begun.
 */
export async function executePlan(
  deps: ApiDeps,
  platform: PlatformClient,
  { proposal: plan, problem }: { proposal: Proposal; problem: PlacementProblem },
  by: Executor,
  world: { approved: State } | { resumed: { isLate: boolean } },
): Promise<Ending | null> {
  const resumed = 'resumed' in world ? world.resumed : null
  const run: Run = {
    ...{ deps, platform, plan, problem, by, queue: plan.steps, outcomes: new Map(), untold: false },
    ...{ replans: 0, nextProposalId: null },
    // Uses the state that was compared: a later change was not approved.
    ...{
      approved: 'approved' in world ? world.approved : problem,
      expected: 'approved' in world ? world.approved : problem,
    },
  }
  if (resumed) await readJournal(run)
  else await notePlanOfEffect(deps.db, by.key, plan.id)
  if (resumed?.isLate) await callOff(run, 'whoever carried this out has ended, and that is too long ago to go on')
  for (let ready = await nextSteps(run); ready.length > 0; ready = await nextSteps(run)) {
    await Promise.all(ready.map((step) => carryOut(run, step)))
  }
  return run.untold ? null : planEnding([...run.outcomes.values()], run.nextProposalId)
}

/** Steps that may begin now; none when all is done, or the rest has been called off. */
async function nextSteps(run: Run): Promise<PlanStep[]> {
  for (;;) {
    await skipHopeless(run)
    const ready = run.queue.filter(({ needs }) => needs.every((need) => run.outcomes.get(need)?.status === 'OK'))
    if (ready.length === 0) return []
    if (run.by.judged && (await cancelAsked(run.deps.db, run.by.judged))) {
      await callOff(run, 'the investigation was stopped')
      return []
    }
    const current = await currentState(run.deps)
    if (await skipReplaced(run, current)) continue
    const here = { ...run.problem, ...current }
    const changes = driftOf(run.expected, current)
    const unready = ready
      .map((step) => ({ step, reason: verifyStep(here, step) }))
      .find(({ reason }) => reason !== null)
    if (changes.length === 0 && !unready) return ready.slice(0, parallelSteps)
    const why = changes.join('; ') || `step ${unready?.step.step} cannot begin: ${unready?.reason}`
    run.expected = current
    if (!(await planAnew(run, here, why))) return []
  }
}

/** True: the new plan is a part of the approved one, and takes its place. False: the rest was called off. */
async function planAnew(run: Run, here: PlacementProblem, why: string): Promise<boolean> {
  const { deps, plan } = run
  run.replans += 1
  if (run.replans > replansAtMost) {
    await callOff(run, `${why}; it has been planned anew ${replansAtMost} times already`)
    return false
  }
  const { standing: _, ...next } = await solve(here, { engine: deps.placement.engine })
  const approved = new Map(run.queue.map((step) => [`${step.action} ${step.vm} ${step.to}`, step.step]))
  const numbers = next.steps.map(({ action, vm, to }) => approved.get(`${action} ${vm} ${to}`))
  if (next.steps.length > 0 && numbers.every((number) => number !== undefined)) {
    const kept = new Set(numbers)
    const spared = run.queue.filter(({ step }) => !kept.has(step))
    run.queue = next.steps.map((step, index) => ({
      ...step,
      step: numbers[index] as number,
      needs: step.needs.map((need) => numbers[need - 1] as number),
    }))
    for (const step of spared) await settle(run, step, 'SKIPPED', `not needed any more: ${why}`)
    return true
  }
  if (next.steps.length > 0) {
    const stored = await storeProposal(
      deps.db,
      {
        ...{ incidentId: plan.incidentId, intent: plan.intent, hostIds: plan.hostIds, fromInventory: true },
        ...{ ...next, standing: null },
        ...{ planDigest: planDigest(next.steps), stateFingerprint: stateFingerprint(here) },
      },
      here,
    )
    run.nextProposalId = stored.id
  }
  const then = run.nextProposalId
    ? `proposal ${run.nextProposalId} plans the rest anew and needs a decision of its own`
    : `a new plan for the rest: ${next.state}`
  await callOff(run, `${why}; ${then}`)
  return false
}

async function carryOut(run: Run, step: PlanStep): Promise<void> {
  const { deps, platform, plan, by } = run
  await noteStarted(deps.db, plan, by, step)
  const ending = await send(platform, step, stepKey(run, step))
  await conclude(run, step, ending)
}

/** What the platform said, and whether the VM is where it said. */
async function conclude(run: Run, step: PlanStep, ending: Ending | null): Promise<void> {
  const current = await currentState(run.deps).catch(() => null)
  const found = current?.vms.find(({ vm }) => vm === step.vm)
  const isThere = found?.running === true && found.host === step.to
  run.untold ||= ending === null && !isThere
  if (ending?.status === 'done' && (isThere || current === null)) {
    run.expected = stateAfter(run.expected, step)
    await settle(run, step, 'OK', ending.detail)
    return
  }
  if (current) run.expected = withVmOf(run.expected, step.vm, current)
  if (ending === null && isThere) return await settle(run, step, 'OK', 'no answer came, and it runs there')
  const where = found ? `${found.running ? 'runs' : 'is stopped'} on ${found.host ?? 'no host'}` : 'could not be read'
  const said = ending === null ? 'it cannot be told whether this took effect' : ending.detail
  await settle(run, step, 'FAILED', ending?.status === 'done' ? `${said}, but ${step.vm} ${where}` : said)
}

async function settle(run: Run, step: PlanStep, status: StepStatus, detail: string): Promise<void> {
  const { vm, to } = step
  run.queue = run.queue.filter((each) => each.step !== step.step)
  run.outcomes.set(step.step, { step: step.step, vm, to, status, detail })
  await noteFinished(run.deps.db, run.plan, run.by, step, { status, detail })
}

/** Steps that need one that did not go well are never begun. */
async function skipHopeless(run: Run): Promise<void> {
  for (const step of run.queue) {
    const missing = step.needs.find((need) => ['FAILED', 'SKIPPED'].includes(run.outcomes.get(need)?.status ?? ''))
    if (missing !== undefined) await settle(run, step, 'SKIPPED', `it needs step ${missing}, which was not done`)
  }
}

/** A step goes to the very VM and host that were approved: another of the same name takes a decision. Answers whether any was skipped. */
async function skipReplaced(run: Run, current: State): Promise<boolean> {
  const replaced = run.queue.flatMap((step) => {
    const why = replacedIn(run.approved, current, step)
    return why === null ? [] : [{ step, why: `${why}: it is not what was approved` }]
  })
  for (const { step, why } of replaced) await settle(run, step, 'SKIPPED', why)
  return replaced.length > 0
}

async function callOff(run: Run, why: string): Promise<void> {
  for (const step of run.queue) await settle(run, step, 'SKIPPED', why)
}

/** What the one who began this had come to: the platform's journal knows each step by its key. */
async function readJournal(run: Run): Promise<void> {
  for (const step of run.plan.steps) {
    const answer = await run.platform.effect(stepKey(run, step))
    if (!answer) continue
    const ending = endingOf(answer) ?? (await platformEnding(run.platform, stepKey(run, step), async () => answer))
    await conclude(run, step, ending)
  }
}

async function currentState({ db, state }: ApiDeps): Promise<State> {
  state.forget()
  await state.requireFresh()
  return await placementState(db)
}

function stepKey({ by }: Run, { step }: PlanStep): string {
  return `${by.key}:${step}`
}

async function send(platform: PlatformClient, { action, vm, from, to }: PlanStep, key: string): Promise<Ending | null> {
  if (action === 'start') return await platformEnding(platform, key, () => platform.startVm(vm, to, key))
  if (from === null) return { status: 'failed', detail: 'a migration without a start', result: {} }
  return await platformEnding(platform, key, () => platform.migrateVm(vm, { from, to }, key))
}

function planEnding(outcomes: StepOutcome[], nextProposalId: string | null = null): Ending {
  const steps = outcomes.sort((a, b) => a.step - b.step)
  const count = (status: StepStatus) => steps.filter((step) => step.status === status).length
  const [ok, failed, skipped] = [count('OK'), count('FAILED'), count('SKIPPED')]
  const parts = [
    failed > 0 ? `${failed} failed` : '',
    skipped > 0 ? `${skipped} ${skipped === 1 ? 'was' : 'were'} not begun` : '',
  ].filter(Boolean)
  const why = steps.find(({ status }) => status !== 'OK')?.detail
  const detail =
    parts.length === 0
      ? `all ${steps.length} steps were done`
      : `${ok} of ${steps.length} steps were done, ${parts.join(', ')}: ${why}`
  const next = nextProposalId === null ? {} : { next_proposal_id: nextProposalId }
  return {
    status: ok === 0 && steps.length > 0 ? 'failed' : 'done',
    detail,
    result: { steps, failed, skipped, ...next },
  }
}
