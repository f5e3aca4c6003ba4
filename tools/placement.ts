import { z } from 'zod'
import { judgedDeath } from '../domain/death.ts'
import type { StepVerification } from '../domain/envelope.ts'
import { formatCount, formatList } from '../domain/format.ts'
import { formatDown, formatOvertaken, toTriageTold } from '../domain/format-plan.ts'
import {
  avoidedHosts,
  type PlanStep,
  placementIntent,
  placementMaxima,
  planForecast,
  proposal,
  triage,
} from '../domain/placement.ts'
import { toList } from '../domain/say.ts'
import type { CorePort, Observation, Preparation } from '../domain/tool.ts'
import { vmLeft } from '../domain/undo.ts'
import { defineTool, discoveredThing, reason, ref, resourceId, sayWrite, state } from './define.ts'

/**
 * Makes a plan without executing it. Sizes of VMs and their current hosts come from the inventory,
 * so that the model cannot invent them.
 */
export const scheduleHaProposal = defineTool({
  name: 'schedule_ha_proposal',
  needs: 'hosts',
  firstFor: ['host', 'vm', 'region'],
  description:
    'Plan where VMs should go, without executing it: proposal_id, steps, and in unplaced who stays down and why. VMs of the highest priority (number) start first.',
  input: z.strictObject({
    intent: placementIntent.describe('what for'),
    host_ids: z
      .array(resourceId)
      .min(1)
      .max(placementMaxima.hostIds)
      .describe('to recover or drain: all that are down, in one plan'),
    vm_ids: z.array(resourceId).max(placementMaxima.vmIds).optional().describe('only these; default all'),
    use_rack_constraints: z.boolean().describe('members of an ha_group in different racks'),
  }),
  output: z.looseObject({
    proposal_id: z.string(),
    state: z.string(),
    steps: z.array(z.looseObject({ vm: z.string() })),
  }),
  effect: 'read',
  risk: 'none',
  reversible: true,
  names: { host_ids: 'host', vm_ids: 'vm' },
  say({ steps, unplaced, reason: why }, { intent, host_ids }) {
    const starts = steps.filter(({ action }) => action === 'start').length
    const moves = steps.length - starts
    const parts = [
      ...(starts > 0 ? [`start ${formatCount(starts, 'VM')}`] : []),
      ...(moves > 0 ? [`migrate ${formatCount(moves, 'VM')}`] : []),
    ]
    const down = toList(unplaced).length
    return `plan to ${intent} ${formatList(host_ids)}: ${parts.join(' and ') || `nothing to do${typeof why === 'string' ? ` (${why})` : ''}`}${down > 0 ? `; ${formatDown(down)}` : ''}`
  },
  discovers: (output) => [
    discoveredThing('proposal', output.proposal_id),
    ...output.steps.map((step) => discoveredThing('vm', step.vm)),
  ],
  run: async ({ intent, host_ids, vm_ids, use_rack_constraints }, { core, incidentId, stepKey, signal }) => {
    const answer = await core.post(
      '/api/v1/placement/proposals',
      { intent, host_ids, vm_ids: vm_ids ?? null, use_rack_constraints, incident_id: incidentId },
      { idempotencyKey: stepKey, signal },
    )
    return answer.ok ? { ...answer, data: withoutPrices(answer.data) } : answer
  },
})

/**
 * Removes the prices of a certificate, which only a program that checks the certificate needs. A
 * model reads only the claim and the prover.
 */
function withoutPrices(data: unknown): unknown {
  const told = z.looseObject({ triage }).safeParse(data).data
  return told ? { ...told, triage: toTriageTold(told.triage) } : data
}

async function readProposal(core: CorePort, id: string, signal?: AbortSignal): Promise<ProposalToday> {
  const answer = await core.get(`/api/v1/placement/proposals/${id}`, { signal })
  if (!answer.ok) throw new ProposalError(answer.problem.detail || answer.problem.title)
  return proposalToday.parse(answer.data)
}

/** A stored plan, and whether it is still valid in the current state. */
const proposalToday = proposal.extend({
  currentFingerprint: z.string(),
  unfitBecause: z.string().nullable().default(null),
  avoided: avoidedHosts.default([]),
  deaths: z.array(judgedDeath).default([]),
  forecast: planForecast.nullable().default(null),
  sizeNote: z.string().nullable().default(null),
})
type ProposalToday = z.infer<typeof proposalToday>

/** The named plan cannot be read or executed. The model gets the reason as the call's result. */
export class ProposalError extends Error {
  override name = 'ProposalError' as const
}

const backWords = 'the same moves in reverse, if each VM is still where the plan moved it and its old host has room'

function preparation(plan: ProposalToday): Preparation {
  const hosts = new Set(plan.steps.flatMap((step) => [step.to]))
  const byItself = plan.forecast?.restarts ?? []
  const starts = plan.steps.filter((step) => step.action === 'start' && !byItself.includes(step.vm)).length
  return {
    targets: [
      ref('proposal', plan.id),
      ...plan.steps.map((step) => ref('vm', step.vm)),
      ...[...hosts].map((host) => ref('host', host)),
    ],
    // Identifies the action by its steps, not by the proposal's id, because the same plan under a
    // new id is the same action.
    identity: { plan: plan.planDigest },
    stateFingerprint: plan.currentFingerprint,
    ...(plan.deaths.length > 0 && { deaths: plan.deaths }),
    dryRun: {
      possible: true,
      summary: summaryOf(plan, starts, [...hosts].sort()),
      details: {
        proposalId: plan.id,
        intent: plan.intent,
        hosts: plan.hostIds,
        state: plan.state,
        steps: plan.steps,
        migrations: plan.migrations,
        lowerBound: plan.lowerBound,
        proof: plan.proof.kind,
        unplaced: plan.unplaced,
        triage: toTriageTold(plan.triage),
        obstacle: plan.obstacle?.text ?? null,
        standing: plan.standing,
        plannedFor: plan.stateFingerprint,
        ...(plan.steps.every(({ action }) => action === 'migrate') && { undo: backWords }),
        ...(plan.avoided.length > 0 && { avoided: plan.avoided }),
        ...(plan.deaths.length > 0 && { deaths: plan.deaths }),
        ...(plan.forecast && { forecast: plan.forecast }),
        ...(plan.sizeNote && { sizeNote: plan.sizeNote }),
      },
    },
  }
}

function summaryOf(
  { migrations, unplaced, avoided, forecast }: ProposalToday,
  starts: number,
  hosts: string[],
): string {
  const down =
    unplaced.length === 0 ? '' : `; ${[formatDown(unplaced.length), ...formatOvertaken(unplaced)].join('; ')}`
  const tried = avoided.map(({ vm, host }) => `; ${vm} not to ${host}, where it failed`).slice(0, 5)
  const count = (what: string, n: number) => (n === 0 ? [] : [`${what} ${n} ${n === 1 ? 'VM' : 'VMs'}`])
  const restarts = forecast?.restarts.length ?? 0
  const byItself = restarts > 0 ? `; the platform starts ${formatCount(restarts, 'VM')} by itself` : ''
  return `${[...count('start', starts), ...count('migrate', migrations)].join(' and ')}, to ${hosts.join(', ')}${byItself}${down}${tried.join('')}`
}

/**
 * Observes whether every VM of the plan runs on the host of its last step. Null if no VM is known
 * to be on another host, but the host of some VM could not be read.
 */
async function planHolds(
  core: CorePort,
  plan: ProposalToday,
  done: readonly DoneStep[] = [],
): Promise<Observation | null> {
  const planned = withChosenHosts(plan, done)
  const final = new Map(planned.map((step) => [step.vm, step.to]))
  const seen = new Map<string, VmSeen | null>()
  for (const vm of final.keys()) {
    const answer = await core.get(`/api/v1/vms/${vm}`)
    seen.set(vm, answer.ok ? vmSeen.parse(answer.data) : null)
  }
  const steps = planned.map((step) => verifyStep(step, seen.get(step.vm) ?? null, final.get(step.vm)))
  const wrong = steps.filter(({ status }) => status === 'not_held')
  if (wrong.length > 0) return { holds: false, observed: wrong.map(({ observed }) => observed).join('; '), steps }
  if ([...seen.values()].includes(null)) return null
  return { holds: true, observed: `all ${final.size} VMs run where the plan put them`, steps }
}

/**
 * Replaces the planned host by the actual host, for each VM that the platform started on a host of
 * its choice. The actual host was checked against the plan's rules when the step ended.
 */
function withChosenHosts({ steps, forecast }: ProposalToday, done: readonly DoneStep[]): PlanStep[] {
  return steps.map((step) => {
    const ended = done.find((each) => each.step === step.step && each.status === 'OK')
    const isChosen = step.action === 'start' && forecast?.restarts.includes(step.vm)
    return ended && isChosen ? { ...step, to: ended.to } : step
  })
}

const doneStep = z.looseObject({ step: z.number(), to: z.string(), status: z.string() })
type DoneStep = z.infer<typeof doneStep>
const carriedOut = z.looseObject({ steps: z.array(doneStep) })
const whatMoved = z.looseObject({
  moves: z.array(z.object({ vm: z.string(), from: z.string(), to: z.string() })),
  started: z.array(z.string()),
})

const vmSeen = z.looseObject({ host: z.string().nullable(), running: z.boolean() })
type VmSeen = z.infer<typeof vmSeen>

/**
 * Verifies one step by the current state of its VM. `last`: the host of the VM's last step. A VM
 * that is not on its step's host disproves only a step that leads to `last`; an earlier step stays
 * unproven.
 */
function verifyStep({ step, vm, to }: PlanStep, seen: VmSeen | null, last: string | undefined): StepVerification {
  if (!seen) return { step, vm, to, status: 'unproven', observed: `${vm} could not be read` }
  const where = `${vm} is ${seen.running ? 'running' : 'stopped'} on ${seen.host ?? 'no host'}`
  const isThere = seen.running && seen.host === last
  if (isThere) return { step, vm, to, status: 'held', observed: where }
  return to === last
    ? { step, vm, to, status: 'not_held', observed: `${where}, not on ${to}` }
    : { step, vm, to, status: 'unproven', observed: where }
}

export const executeMigration = defineTool({
  name: 'execute_migration',
  needs: 'hosts',
  firstFor: ['host', 'vm', 'region'],
  description: 'Execute a proposal of schedule_ha_proposal. A person approves it first.',
  input: z.strictObject({
    proposal_id: z
      .string()
      .regex(/^prp_[0-9a-z]{26}$/, 'is not a proposal id')
      .meta({ description: 'as the plan gave it', examples: ['prp_0123456789abcdefghjkmnpqrs'] }),
    reason,
  }),
  output: z.looseObject({}),
  effect: 'write',
  risk: 'high',
  reversible: true,
  names: { proposal_id: 'proposal' },
  say: (output, { proposal_id }) => sayWrite(output, `plan ${proposal_id} is carried out`),
  discovers: (output) =>
    typeof output.next_proposal_id === 'string' ? [discoveredThing('proposal', output.next_proposal_id)] : [],
  async prepare({ proposal_id }, { core, signal }) {
    const plan = await readProposal(core, proposal_id, signal)
    if (plan.state !== 'planned' && plan.state !== 'partial')
      throw new ProposalError(`proposal ${proposal_id} is ${plan.state}: there is nothing to execute`)
    // Refuses a plan that is already carried out, for instance for another incident of the same
    // host, because no approval is needed for it.
    if ((await planHolds(core, plan))?.holds)
      throw new ProposalError(`proposal ${proposal_id} has been carried out already`)
    if (plan.steps.every(({ vm }) => plan.forecast?.restarts.includes(vm)))
      throw new ProposalError(
        `proposal ${proposal_id} leaves nothing to do: the platform fences the dead host and starts ${formatList(plan.forecast?.restarts ?? [])} by itself. Check these VMs again`,
      )
    // Refuses a plan that can no longer be executed, because an approval would be useless.
    if (plan.unfitBecause !== null)
      throw new ProposalError(`proposal ${proposal_id} no longer fits (${plan.unfitBecause}): plan again`)
    return preparation(plan)
  },
  proof: state('every VM of the plan runs on the host the plan gave it'),
  postcondition: {
    withinSeconds: 30,
    async check({ proposal_id }, output, { core }) {
      const done = carriedOut.safeParse(output).data?.steps
      return await planHolds(core, await readProposal(core, proposal_id), done)
    },
  },
  undo: {
    // Returns null, because the arguments do not show whether the plan can be undone. The plan
    // shows whether it only moves running VMs, and the preparation reads the plan.
    does: () => null,
    of(_, output) {
      const told = whatMoved.safeParse(output)
      if (!told.success) return { none: 'it is not known which VMs the plan moved, and from which hosts' }
      const { moves, started } = told.data
      if (started.length > 0)
        return { none: `the plan started ${formatList(started)}, and a VM that was down elsewhere cannot go back` }
      if (moves.length === 0) return { none: 'the plan moved no VM' }
      const back = moves.toReversed().map(({ vm, from, to }) => ({ vm, from: to, to: from }))
      // Keeps the last host of a VM that moved more than once.
      const left = Object.assign({}, ...moves.map(({ vm, to }) => vmLeft(vm, { host: to, running: true })))
      return { tool: 'execute_migration', arguments: { moves: back }, left }
    },
  },
  run: ({ proposal_id, reason: why }, { core, stepKey, ifMatch, signal }) =>
    core.post(
      `/api/v1/placement/proposals/${proposal_id}/execute`,
      { reason: why },
      { idempotencyKey: stepKey, ...(ifMatch ? { ifMatch } : {}), signal },
    ),
})
