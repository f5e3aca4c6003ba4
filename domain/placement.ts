import { z } from 'zod'

/** Sizes in MiB of RAM and thousandths of a CPU. */
const size = { ramMib: z.number().int().positive(), cpuMc: z.number().int().positive() }

export const placementHost = z.object({
  name: z.string(),
  ...size,
  rack: z.string().nullable(),
  state: z.enum(['live', 'draining', 'dead']),
})
export type PlacementHost = z.infer<typeof placementHost>

export const placementVm = z.object({
  vm: z.string(),
  ...size,
  haGroup: z.string().nullable(),
  /** Where it runs, or ran when its host died; null when it was never placed. */
  host: z.string().nullable(),
  running: z.boolean(),
})
export type PlacementVm = z.infer<typeof placementVm>

export const placementIntent = z.enum(['recover', 'drain', 'rebalance'])

export const placementProblem = z.object({
  intent: placementIntent,
  /** The hosts the intent is about: the dead ones to recover from, the ones to drain. */
  hostIds: z.array(z.string()).max(100),
  /** Only these VMs may be placed anew; null means every VM stranded on `hostIds`. */
  vmIds: z.array(z.string()).max(2000).nullable(),
  useRackConstraints: z.boolean(),
  hosts: z.array(placementHost),
  vms: z.array(placementVm),
})
export type PlacementProblem = z.infer<typeof placementProblem>

export const planStep = z.object({
  step: z.number().int(),
  action: z.enum(['start', 'migrate']),
  vm: z.string(),
  from: z.string().nullable(),
  to: z.string(),
})
export type PlanStep = z.infer<typeof planStep>

/**
 * `no_action`: nothing is stranded. `planned`: every stranded VM has a place. `infeasible`: proved that there is none.
 * `not_found`: time ran out, or no order of single moves was found, which says nothing about feasibility.
 */
export const placementState = z.enum(['no_action', 'planned', 'infeasible', 'not_found'])

export const plan = z.object({
  state: placementState,
  steps: z.array(planStep),
  /** Live migrations in it; starts of stranded VMs are not counted. */
  migrations: z.number().int(),
  reason: z.string().nullable(),
})
export type Plan = z.infer<typeof plan>

/** A stored plan: what `execute_migration` names, so that the model can invent neither sizes nor steps. */
export const proposal = z.object({
  id: z.string(),
  incidentId: z.string().nullable(),
  intent: placementIntent,
  hostIds: z.array(z.string()),
  state: placementState,
  migrations: z.number().int(),
  steps: z.array(planStep),
  reason: z.string().nullable(),
  /** SHA-256 of the ordered steps. Two proposals with the same steps are the same plan. */
  planDigest: z.string(),
  /** SHA-256 of the facts the plan was made for: hosts, VMs, where they run. */
  stateFingerprint: z.string(),
  createdAt: z.string(),
})
export type Proposal = z.infer<typeof proposal>
