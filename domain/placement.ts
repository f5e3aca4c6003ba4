import { z } from 'zod'

/** Sizes in MiB of RAM and thousandths of a CPU. */
const size = { ramMib: z.number().int().positive(), cpuMc: z.number().int().positive() }

const placementHost = z.object({
  name: z.string(),
  ...size,
  /**
   * Kept for the host and lent to no VM; absent, the RAM reserve of all hosts counts and no CPU is
   * kept.
   */
  ramReserveMib: z.number().int().nonnegative().optional(),
  cpuReserveMc: z.number().int().nonnegative().optional(),
  rack: z.string().nullable(),
  /** A VM stays in the region of its host: disks do not follow it into another. */
  region: z.string().nullable().default(null),
  state: z.enum(['live', 'draining', 'dead']),
})
export type PlacementHost = z.infer<typeof placementHost>

const placementVm = z.object({
  vm: z.string(),
  ...size,
  haGroup: z.string().nullable(),
  /** Where it runs, or ran when its host died; null when it was never placed. */
  host: z.string().nullable(),
  running: z.boolean(),
  /** When not all can be placed, the higher ones come first. */
  priority: z.number().int().min(0).max(1_000).default(0),
  /** The only hosts it may be brought to; empty: any. */
  pinnedTo: z.array(z.string()).max(1_000).default([]),
  forbiddenHosts: z.array(z.string()).max(1_000).default([]),
  /** VMs of one affinity group end on one host. They are moved together or not at all. */
  affinityGroup: z.string().nullable().default(null),
})
export type PlacementVm = z.infer<typeof placementVm>

/** What of a host may be used: CPU beyond what there is, RAM kept for the host itself. */
export const placementLimits = z.object({
  cpuOvercommitPercent: z.number().int().min(100).max(3_200).default(100),
  ramReservePercent: z.number().int().min(0).max(90).default(0),
})
export type PlacementLimits = z.infer<typeof placementLimits>

/** A host that a VM is not brought to in this incident: a step to it failed there. */
const avoided = z.object({ vm: z.string(), host: z.string(), why: z.string() })
export type AvoidedHost = z.infer<typeof avoided>
export const avoidedHosts = z.array(avoided).max(1_000)

export const placementIntent = z.enum(['recover', 'drain', 'rebalance'])

/** How much one plan may be about: the same in a file, in a tool's call and over the API. */
export const placementMaxima = { hostIds: 1_000, vmIds: 20_000, hosts: 5_000, vms: 50_000 } as const

export const placementProblem = z.object({
  intent: placementIntent,
  /** The hosts the intent is about: the dead ones to recover from, the ones to drain. */
  hostIds: z.array(z.string()).max(placementMaxima.hostIds),
  /** Only these VMs may be placed again; null means every VM stranded on `hostIds`. */
  vmIds: z.array(z.string()).max(placementMaxima.vmIds).nullable(),
  useRackConstraints: z.boolean(),
  limits: placementLimits.default({ cpuOvercommitPercent: 100, ramReservePercent: 0 }),
  hosts: z.array(placementHost),
  vms: z.array(placementVm),
  avoided: avoidedHosts.optional(),
})
export type PlacementProblem = z.infer<typeof placementProblem>

export const planStep = z.object({
  step: z.number().int(),
  action: z.enum(['start', 'migrate']),
  vm: z.string(),
  from: z.string().nullable(),
  to: z.string(),
  /** Steps that have to be over before this one begins. Those of one wave can run together. */
  needs: z.array(z.number().int()),
  /** The round in which it can run at the earliest. */
  wave: z.number().int().positive(),
  /** The VM's priority, higher is more important. Plans of 0.1.0 have neither it nor the group. */
  priority: z.number().int().optional(),
  haGroup: z.string().nullable().optional(),
})
export type PlanStep = z.infer<typeof planStep>

/**
 * `no_action`: nothing is stranded. `planned`: every stranded VM has a place. `partial`: some have,
 * the most important first; `unplaced` says who stays down. `infeasible`: proved that no plan
 * places all. `not_found`: time ran out, which proves nothing.
 */
const placementState = z.enum(['no_action', 'planned', 'partial', 'infeasible', 'not_found'])

/**
 * The proof that fewer migrations do not do. `certificate`: checked without a solver; `exhausted`:
 * all orders were tried; `engine`: a solver's word.
 */
const proof = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('trivial') }),
  z.object({ kind: z.literal('exhausted') }),
  z.object({ kind: z.literal('engine') }),
  z.object({
    kind: z.literal('certificate'),
    k: z.number().int().nonnegative(),
    scale: z.number().int().positive(),
    price: z.record(z.string(), z.number().int().nonnegative()),
  }),
])
export type PlanProof = z.infer<typeof proof>

const maxPrices = 10_000
const wholeByName = z
  .record(z.string(), z.number().int().min(0).max(1_000_000_000))
  .refine((all) => Object.keys(all).length <= maxPrices, `at most ${maxPrices}`)
const unit = z.number().int().min(1).max(1_000_000_000)

/**
 * The proof for one priority that at least `down` of it stay down in every placement that leaves as
 * many of each higher one down: whole weights by higher priority, and prices by class of VMs
 * (`placement/triage-certificate.ts`). Wrong weights, prices or units only fail to prove.
 */
const triageLevel = z.object({
  priority: z.number().int(),
  down: z.number().int().positive(),
  scale: unit,
  /** Sizes and room are counted in whole units of so much, rounded down. */
  ramUnit: unit,
  cpuUnit: unit,
  weights: wholeByName,
  price: wholeByName,
})
export type TriageLevel = z.infer<typeof triageLevel>

const maxTriageLevels = 20
const triageLevels = z.array(triageLevel).min(1).max(maxTriageLevels)

/**
 * The proof that no choice of who stays down does less harm. `certificate`: for the priorities in
 * `levels`, highest first, and no others; `engine`: a solver's word, with its certificates;
 * `exhausted`: every choice and order was tried.
 */
export const triage = z.discriminatedUnion('proof', [
  z.object({ proof: z.literal('certificate'), levels: triageLevels }),
  z.object({ proof: z.literal('engine'), levels: triageLevels.optional() }),
  z.object({ proof: z.literal('exhausted') }),
])
export type Triage = z.infer<typeof triage>

/** VMs that stay down in a plan without room for all, and the rule or room in the way. */
const unplaced = z.object({
  vm: z.string(),
  reason: z.string(),
  priority: z.number().int().optional(),
  haGroup: z.string().nullable().optional(),
  /** VMs of lower priority that get a place in the same plan. */
  overtakenBy: z.array(z.string()).optional(),
})
export type Unplaced = z.infer<typeof unplaced>

/**
 * Reasons why not all can be placed. `core`: rules and limits that contradict each other, and would
 * not without any one of them. `repairs`: single changes that each gave a plan when tried;
 * `drop_racks` (`use_rack_constraints: false`) also where it only starts VMs that matter more.
 */
const obstacle = z.object({
  text: z.string(),
  core: z.array(z.object({ kind: z.enum(['ram', 'cpu', 'ha_group', 'pins', 'vm']), name: z.string() })),
  repairs: z.array(
    z.object({
      kind: z.enum(['more_ram', 'more_cpu', 'drop_group', 'drop_pins', 'leave_down', 'drop_racks']),
      name: z.string(),
      /** MiB or thousandths of a CPU, where something is to grow. */
      amount: z.number().int().nullable(),
      migrations: z.number().int(),
      text: z.string(),
    }),
  ),
})
export type Obstacle = z.infer<typeof obstacle>

/**
 * The outcome of one more death, by host or, with rack constraints, by rack: all restart in the
 * room there is, all restart after others `moved`, or no way was `not_found` in time. The last
 * proves nothing, unless `lacks` names what the remaining hosts are short of in all.
 */
const loss = z.object({
  name: z.string(),
  outcome: z.enum(['restarted', 'moved', 'not_found']),
  lacks: z.object({ ramMib: z.number().int(), cpuMc: z.number().int() }).optional(),
})
export type Loss = z.infer<typeof loss>
const standing = z.object({ domain: z.enum(['host', 'rack']), before: z.array(loss), after: z.array(loss) })
export type Standing = z.infer<typeof standing>

export const plan = z.object({
  state: placementState,
  steps: z.array(planStep),
  /** Live migrations in it; starts of stranded VMs are not counted. */
  migrations: z.number().int(),
  /** No plan for all needs fewer, and why. `migrations - lowerBound` is what may still be saved. */
  lowerBound: z.number().int(),
  proof,
  unplaced: z.array(unplaced),
  /**
   * Absent where it is unknown if a better choice of who stays down exists, or an older release
   * made the plan.
   */
  triage: triage.optional(),
  obstacle: obstacle.nullable(),
  standing: standing.nullable(),
  reason: z.string().nullable(),
  /**
   * Time ended a search: more of it, or a faster machine, may find another plan. Otherwise one seed
   * gives one plan. Not stored.
   */
  isTimeUp: z.boolean().optional(),
})
export type Plan = z.infer<typeof plan>

/**
 * The platform's own part of a plan: its fencing and restarts are a forecast, and nothing is sent
 * for them.
 */
export const planForecast = z.object({
  /** VMs of the plan's starts that the platform starts by itself, on hosts that it chooses. */
  restarts: z.array(z.string()),
  /** VMs that it would start as well, and for which no room was found. */
  staysDown: z.array(z.string()),
})
export type PlanForecast = z.infer<typeof planForecast>

/** A stored plan: `execute_migration` names it, so a model invents neither sizes nor steps. */
export const proposal = plan.extend({
  id: z.string(),
  incidentId: z.string().nullable(),
  intent: placementIntent,
  hostIds: z.array(z.string()),
  /** SHA-256 of the ordered steps. Two proposals with the same steps are the same plan. */
  planDigest: z.string(),
  /** SHA-256 of the facts the plan was made for: hosts, VMs, where they run. */
  stateFingerprint: z.string(),
  /** False for hosts and VMs that somebody made up: such a plan is shown, and never carried out. */
  fromInventory: z.boolean(),
  createdAt: z.string(),
})
export type Proposal = z.infer<typeof proposal>

const step = planStep.extend({
  needs: planStep.shape.needs.default([]),
  wave: planStep.shape.wave.nullable().default(null),
})

/** The proof in a dry run: its kind, and the priorities that a certificate covers. */
const triageTold = z.object({
  proof: z.enum(triage.options.map((each) => each.shape.proof.value)),
  certified: z.array(z.number().int()),
})
export type TriageTold = z.infer<typeof triageTold>

/** The plan in an approval's dry run. Parts that older approvals lack are left out or empty. */
const dryRunPlan = z.object({
  steps: z.array(step).min(1),
  state: placementState.optional(),
  migrations: z.number().int().optional(),
  lowerBound: z.number().int().optional(),
  proof: z.enum(proof.options.map((each) => each.shape.kind.value)).optional(),
  unplaced: z.array(unplaced).default([]),
  triage: triageTold.nullable().default(null),
  obstacle: z.string().nullable().default(null),
  standing: standing.nullable().default(null),
})
export type DryRunPlan = z.infer<typeof dryRunPlan>

/**
 * Null for a dry run without a plan, or with a field that is not understood: then it is shown as it
 * is.
 */
export function planOfDryRun(details: Record<string, unknown>): DryRunPlan | null {
  return dryRunPlan.safeParse(details).data ?? null
}

/** A stored plan with the problem that it was made for. */
export const proposalWithProblem = z.object({
  proposal,
  problem: placementProblem,
  /**
   * Reasons of each live host against a VM that stays down, once the steps are done: short and in
   * full.
   */
  barred: z.array(z.object({ vm: z.string(), host: z.string(), short: z.string(), text: z.string() })).default([]),
})
export type BarredVm = z.infer<typeof proposalWithProblem>['barred'][number]
export type ProposalWithProblem = z.infer<typeof proposalWithProblem>
