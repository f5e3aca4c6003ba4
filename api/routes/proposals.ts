import { z } from '@hono/zod-openapi'
import { vmsRestartedElsewhere } from '../../db/inventory/deaths.ts'
import { failedPlaces, placementState, proposalById, storeProposal } from '../../db/inventory/proposals.ts'
import { hostIsOff, judgedDeath } from '../../domain/death.ts'
import { actionDigest } from '../../domain/digest.ts'
import {
  avoidedHosts,
  type PlacementProblem,
  type PlanForecast,
  type Proposal,
  placementIntent,
  placementMaxima,
  planForecast,
  proposal,
  proposalWithProblem,
} from '../../domain/placement.ts'
import type { ResourceRef } from '../../domain/registry.ts'
import { deathsOfPlan, requireDead, saidWith } from '../../effects/dead-hosts.ts'
import { executePlan } from '../../effects/execute-plan.ts'
import { requireUnchanged, type StoredPlan, whyUnfit } from '../../effects/plan-state.ts'
import { requirePlatform } from '../../effects/platform.ts'
import { runEffect } from '../../effects/run-effect.ts'
import { InvalidProblemError } from '../../placement/certificate.ts'
import { decodeUtf8, parseJson } from '../../placement/document.ts'
import { type ClusterState, planDigest, stateFingerprint } from '../../placement/plan.ts'
import { findIdleRequest, readProblemFile } from '../../placement/problem-file.ts'
import { solve } from '../../placement/solve.ts'
import { listBarred } from '../../placement/unplaced.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { notFound, Problem } from '../http/problem.ts'
import { actDirectly, directAnswer, directBody } from '../manual-change.ts'
import { answerEffect } from './effects.ts'
import { incidentId, proposalExample, proposalId } from './examples.ts'
import { requireIncident } from './incidents.ts'

const tag = 'placement'
const params = z.object({ id: z.string().max(100) })
const resourceId = z.string().min(1).max(100)

const proposeEndpoint = endpoint({
  method: 'post',
  path: '/placement/proposals',
  permission: 'record',
  tag,
  summary: 'Plans on which hosts VMs should run; executes nothing',
  description:
    'Sizes and current hosts come from the inventory. 503 while the platform cannot be reached. No VM is planned onto a host where a step of the same incident failed: `avoided`. With `problem`, hosts and VMs come from the body (docs/explanation/placement.md), and the plan is never carried out.',
  body: z.strictObject({
    intent: placementIntent,
    host_ids: z.array(resourceId).min(1).max(placementMaxima.hostIds),
    vm_ids: z.array(resourceId).max(placementMaxima.vmIds).nullable().default(null),
    use_rack_constraints: z.boolean(),
    incident_id: z.string().max(100).nullable().default(null),
    problem: z.record(z.string(), z.unknown()).optional(),
  }),
  bodyExample: {
    intent: 'recover',
    host_ids: ['host-osl-2'],
    vm_ids: null,
    use_rack_constraints: true,
    incident_id: incidentId,
  },
  answer: proposal.extend({ proposal_id: z.string(), avoided: avoidedHosts.optional() }),
  example: { ...proposalExample, proposal_id: proposalId },
  status: 201,
  problems: [404],
  agent: {
    tool: 'schedule_ha_proposal',
    identity: (_params, { intent, host_ids, vm_ids, use_rack_constraints }) => ({
      intent,
      host_ids,
      vm_ids,
      use_rack_constraints,
    }),
  },
  async run({ scope, body, judged, c }, deps) {
    if (body.problem && judged)
      throw new Problem(422, 'INVALID', 'An agent can only plan for the inventory, so leave "problem" out.')
    // Uses the incident of the agent's run, whatever the request names.
    const incidentId = judged?.incidentId ?? body.incident_id
    if (incidentId !== null) await requireIncident(scope, incidentId)
    const { plan, problem } = await soundBody(await c.req.arrayBuffer())
      .then(() => planned(deps, { ...body, incidentId }, c.req.raw.signal))
      .catch((error) => {
        if (!(error instanceof InvalidProblemError)) throw error
        const errors = error.flaws.map(({ path, message }) => ({ path, message }))
        throw new Problem(400, 'INVALID_PROBLEM', error.message, { fields: { errors } })
      })
    const stored = await storeProposal(
      deps.db,
      {
        incidentId,
        intent: problem.intent,
        hostIds: problem.hostIds,
        ...plan,
        planDigest: planDigest(plan.steps),
        stateFingerprint: stateFingerprint(problem),
        fromInventory: body.problem === undefined,
      },
      problem,
    )
    return { ...stored, ...avoidedOf(problem), isTimeUp: plan.isTimeUp, proposal_id: stored.id }
  },
})

const getProposalEndpoint = endpoint({
  method: 'get',
  path: '/placement/proposals/{id}',
  permission: 'read',
  tag,
  summary: 'A stored plan, the fingerprint of the current state, and whether the plan still fits that state',
  description:
    '`deaths`: hosts that the plan treats as dead, with the sources that report each death. `forecast`: VMs that the platform starts elsewhere by itself. `sizeNote`: what the sizes leave out.',
  params,
  answer: proposal.extend({
    currentFingerprint: z.string(),
    unfitBecause: z.string().nullable(),
    avoided: avoidedHosts.optional(),
    deaths: z.array(judgedDeath).optional(),
    forecast: planForecast.optional(),
    sizeNote: z.string().optional(),
  }),
  example: { ...proposalExample, currentFingerprint: proposalExample.stateFingerprint, unfitBecause: null },
  problems: [404],
  async run({ params: { id } }, deps) {
    const found = await requireProposal(deps, id)
    await deps.state.requireCurrent()
    const today = await placementState(deps.db)
    const unfitBecause = whyUnfit(deps, found, today)
    const deaths = await deathsOfPlan(deps, found.proposal.steps)
    return {
      ...found.proposal,
      ...avoidedOf(found.problem),
      ...(deaths.length > 0 && { deaths }),
      ...(await forecastOf(deps, found.proposal)),
      ...(deps.platform?.sizeNote && { sizeNote: deps.platform.sizeNote }),
      currentFingerprint: stateFingerprint(today),
      unfitBecause,
    }
  },
})

const getProblemEndpoint = endpoint({
  method: 'get',
  path: '/placement/proposals/{id}/problem',
  permission: 'read',
  tag,
  summary: 'A stored plan with the hosts and VMs for which it was made',
  description:
    'The state at the time of the plan, from the database, so it is available while the platform cannot be reached. `barred` explains for the first eight VMs that stay down why no live host can take them.',
  params,
  answer: proposalWithProblem,
  example: {
    proposal: proposalExample,
    problem: {
      intent: 'recover',
      hostIds: ['host-osl-2'],
      vmIds: null,
      useRackConstraints: true,
      limits: { cpuOvercommitPercent: 100, ramReservePercent: 0 },
      hosts: [],
      vms: [],
    },
    barred: [
      {
        vm: 'vm-9',
        host: 'host-ber-1',
        short: 'region osl only',
        text: 'vm-9 cannot go to host-ber-1: the disks of the VM are in region osl.',
      },
    ],
  },
  problems: [404],
  async run({ params: { id } }, deps) {
    const found = await requireProposal(deps, id)
    return { ...found, barred: listBarred(found.problem, found.proposal) }
  },
})

const executeEndpoint = endpoint({
  method: 'post',
  path: '/placement/proposals/{id}/execute',
  permission: 'act_on_platform',
  tag,
  summary: 'Executes a stored plan; the steps of a wave run at once',
  description:
    '`If-Match` is the fingerprint of the approved state. A failed step stops only the steps that need it; a change by somebody else stops the rest, and a new plan is made. VMs of a dead host start elsewhere only after fencing, after a second source confirms its death, or with that host in `hostIsOff`. An agent needs an approval that its run has used.',
  params,
  headers: z.object({ 'if-match': z.string().max(100).optional() }),
  body: z.strictObject({ ...directBody, hostIsOff: hostIsOff.optional() }),
  bodyExample: { reason: 'host-osl-2 is down' },
  answer: z.looseObject({
    detail: z.string(),
    key: z.string(),
    steps: z
      .array(
        z.object({
          step: z.number().int(),
          vm: z.string(),
          to: z.string(),
          status: z.enum(['OK', 'FAILED', 'SKIPPED']),
          detail: z.string(),
        }),
      )
      .optional(),
    failed: z.number().int().optional(),
    skipped: z.number().int().optional(),
    changed: z.array(z.string()).nullable().optional(),
    ...directAnswer,
    next_proposal_id: z.string().optional(),
  }),
  example: {
    detail: 'all 1 steps were done',
    key: `${incidentId}.1:4:tool_started:0`,
    steps: [{ step: 1, vm: 'vm-osl-3', to: 'host-osl-3', status: 'OK', detail: 'started' }],
    failed: 0,
    skipped: 0,
    changed: ['vm-osl-3 started on host-osl-3'],
  },
  problems: [404, 409, 412, 428, 502, 504],
  agent: {
    tool: 'execute_migration',
    approved: true,
    async identity({ id }, _body, db) {
      const found = await proposalById(db, id ?? '')
      return found && { plan: found.proposal.planDigest }
    },
  },
  async run({ params: { id }, body: { reason, alone, hostIsOff = [] }, principal, actor, key, judged, c }, deps) {
    const platform = requirePlatform(deps)
    const found = await requireProposal(deps, id)
    const { proposal: plan } = found
    if (!judged) {
      const prepare = async () => {
        const state = await requireUnchanged(deps, found, c.req.header('if-match'))
        await requireDead(deps, plan.steps, hostIsOff)
        const targets = targetsOfPlan(plan)
        return { targets, summary: `Carry out plan ${id}`, stateFingerprint: stateFingerprint(state) }
      }
      const args = { proposal_id: id, reason }
      const act = { principal, actor, c, tool: 'execute_migration', args, alone, prepare, hostIsOff }
      const manual = await actDirectly(deps, act)
      if (manual) return manual
    }
    const digest = actionDigest('execute_migration', { plan: plan.planDigest })
    const request = { principal, key, judged, tool: 'execute_migration', actionDigest: digest }
    let approved: ClusterState | null = null
    const effect = await runEffect(
      deps,
      { ...request, incidentId: plan.incidentId },
      {
        async before() {
          approved = await requireUnchanged(deps, found, c.req.header('if-match'))
          await requireDead(deps, plan.steps, await saidWith(deps, judged))
        },
        async perform(effectKey) {
          if (!approved) throw new Error('a plan begins after the state was compared')
          return await executePlan(deps, platform, found, { key: effectKey, actor, judged }, { approved })
        },
      },
    )
    return c.json(answerEffect(effect))
  },
})

/** Computes what the platform does by itself. Empty for a platform that does nothing by itself. */
async function forecastOf({ db }: ApiDeps, { steps, unplaced }: Proposal): Promise<{ forecast?: PlanForecast }> {
  const starts = steps.filter(({ action }) => action === 'start').map(({ vm }) => vm)
  const down = unplaced.map(({ vm }) => vm)
  const byItself = await vmsRestartedElsewhere(db, [...starts, ...down])
  if (byItself.size === 0) return {}
  const own = (vms: string[]) => vms.filter((vm) => byItself.has(vm))
  return { forecast: { restarts: own(starts), staysDown: own(down) } }
}

/** Lists what a plan touches, in the form that an agent's call has. */
function targetsOfPlan({ id, steps }: Pick<Proposal, 'id' | 'steps'>): ResourceRef[] {
  const vms = steps.map(({ vm }) => ({ kind: 'vm' as const, id: vm }))
  const hosts = [...new Set(steps.map(({ to }) => to))].map((host) => ({ kind: 'host' as const, id: host }))
  return [...hosts, ...vms, { kind: 'proposal', id }]
}

/**
 * Throws InvalidProblemError for bytes that are not UTF-8, and for repeated keys, of which only one
 * value would be read.
 */
async function soundBody(body: ArrayBuffer): Promise<void> {
  parseJson(decodeUtf8(new Uint8Array(body)))
}

/** Lists the hosts that VMs avoid after a failed step in this incident. Empty if no step failed. */
function avoidedOf({ avoided = [] }: Pick<PlacementProblem, 'avoided'>): Pick<PlacementProblem, 'avoided'> {
  return avoided.length > 0 ? { avoided } : {}
}

type Asked = {
  incidentId: string | null
  intent: PlacementProblem['intent']
  host_ids: string[]
  vm_ids: string[] | null
  use_rack_constraints: boolean
  problem?: Record<string, unknown> | undefined
}

/** Makes a plan for the current inventory, or for the hosts and VMs of the request. */
async function planned({ db, state, placement }: ApiDeps, asked: Asked, signal: AbortSignal) {
  const { intent, host_ids, vm_ids, use_rack_constraints } = asked
  const fields = { intent, host_ids, use_rack_constraints, ...(vm_ids ? { vm_ids } : {}) }
  if (asked.problem) {
    const problem = readProblemFile({ ...fields, ...asked.problem })
    const idle = findIdleRequest(problem)
    if (idle) throw new InvalidProblemError([idle])
    return { problem, plan: await solve(problem, { engine: placement.engine, signal }) }
  }
  await state.requireCurrent()
  const problem: PlacementProblem = {
    intent,
    hostIds: host_ids,
    vmIds: vm_ids,
    useRackConstraints: use_rack_constraints,
    limits: placement.limits,
    ...(await placementState(db)),
    ...avoidedOf({ avoided: asked.incidentId === null ? [] : await failedPlaces(db, asked.incidentId) }),
  }
  const plan = await solve(problem, { engine: placement.engine, signal })
  // Adds a reason to a plan without steps, which would mislead a reader if the wrong host was
  // named.
  const idle = plan.state === 'no_action' ? findIdleRequest(problem) : null
  return { problem, plan: idle ? { ...plan, reason: idle.message } : plan }
}

async function requireProposal(deps: ApiDeps, id: string): Promise<StoredPlan> {
  const found = await proposalById(deps.db, id)
  if (!found) throw notFound(`proposal ${id}`)
  return found
}

export const proposalRoutes = [proposeEndpoint, getProposalEndpoint, getProblemEndpoint, executeEndpoint]
