import { z } from 'zod'

/** Sizes, in MiB of RAM and thousandths of a CPU. */
const size = { ramMib: z.number().int().positive(), cpuMc: z.number().int().positive() }

const placementHost = z.object({
  name: z.string(),
  ...size,
  /**
   * RAM that is reserved for the host itself, in MiB, and CPU in thousandths. If they are absent,
   * the general reserve of RAM applies, and no CPU is reserved.
   */
  ramReserveMib: z.number().int().nonnegative().optional(),
  cpuReserveMc: z.number().int().nonnegative().optional(),
  rack: z.string().nullable(),
  /**
   * The region of the host. A VM stays in its region, because its disks cannot move to another
   * region.
   */
  region: z.string().nullable().default(null),
  state: z.enum(['live', 'draining', 'dead']),
})
export type PlacementHost = z.infer<typeof placementHost>

const placementVm = z.object({
  vm: z.string(),
  ...size,
  haGroup: z.string().nullable(),
  /** The host on which the VM runs, or ran before it failed; null if the VM was never placed. */
  host: z.string().nullable(),
  running: z.boolean(),
  /** The priority of the VM. If not all VMs fit, VMs with a higher priority come first. */
  priority: z.number().int().min(0).max(1_000).default(0),
  /** The only hosts to which the VM may be brought. An empty list stands for all hosts. */
  pinnedTo: z.array(z.string()).max(1_000).default([]),
  forbiddenHosts: z.array(z.string()).max(1_000).default([]),
  /**
   * VMs of one affinity group must be on the same host at the end. The VMs of a group move together
   * or not at all.
   */
  affinityGroup: z.string().nullable().default(null),
})
export type PlacementVm = z.infer<typeof placementVm>

/** Limits of a host: CPU overcommit, and RAM that is reserved for the host itself. */
export const placementLimits = z.object({
  cpuOvercommitPercent: z.number().int().min(100).max(3_200).default(100),
  ramReservePercent: z.number().int().min(0).max(90).default(0),
})
export type PlacementLimits = z.infer<typeof placementLimits>

/** A host to which an incident does not move a VM again, because a step to this host failed. */
const avoided = z.object({ vm: z.string(), host: z.string(), why: z.string() })
export type AvoidedHost = z.infer<typeof avoided>
export const avoidedHosts = z.array(avoided).max(1_000)

export const placementIntent = z.enum(['recover', 'drain', 'rebalance'])

/** Limits of one plan. They apply to a file, to a call of a tool, and to a request to the API. */
export const placementMaxima = { hostIds: 1_000, vmIds: 20_000, hosts: 5_000, vms: 50_000 } as const

export const placementProblem = z.object({
  intent: placementIntent,
  /** The dead hosts to recover from, or the hosts to drain, as `intent` says. */
  hostIds: z.array(z.string()).max(placementMaxima.hostIds),
  /** The only VMs that may be placed. Null stands for every VM that is stranded on `hostIds`. */
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
  /** Steps that must end before this step begins. Steps of one wave can run together. */
  needs: z.array(z.number().int()),
  /** The earliest round in which the step can run. */
  wave: z.number().int().positive(),
  /**
   * The priority of the VM; a higher number is more important. Plans of 0.1.0 have neither priority
   * nor group.
   */
  priority: z.number().int().optional(),
  haGroup: z.string().nullable().optional(),
})
export type PlanStep = z.infer<typeof planStep>

/**
 * The result of planning. `no_action`: no VM is stranded. `planned`: every stranded VM has a place.
 * `partial`: some VMs have a place, the most important first, and `unplaced` lists the VMs that
 * stay down. `infeasible`: it is proved that no plan places all VMs. `not_found`: the time ran out,
 * which proves nothing.
 */
const placementState = z.enum(['no_action', 'planned', 'partial', 'infeasible', 'not_found'])

/**
 * The proof that fewer migrations do not suffice. `certificate`: can be checked without a solver.
 * `exhausted`: all orders were tried. `engine`: a statement of a solver.
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
 * The proof, for one priority, that at least `down` of its VMs stay down in every placement that
 * leaves no more VMs of each higher priority down. It consists of whole-number weights of the
 * higher priorities, and of prices by class of VMs (`placement/triage-certificate.ts`). With wrong
 * weights, prices or units the proof fails, but never proves something false.
 */
const triageLevel = z.object({
  priority: z.number().int(),
  down: z.number().int().positive(),
  scale: unit,
  /** The unit in which sizes and free capacity are counted, rounded down. */
  ramUnit: unit,
  cpuUnit: unit,
  weights: wholeByName,
  price: wholeByName,
})
export type TriageLevel = z.infer<typeof triageLevel>

const maxTriageLevels = 20
const triageLevels = z.array(triageLevel).min(1).max(maxTriageLevels)

/**
 * The proof that no other choice of VMs that stay down does less harm. `certificate`: only for the
 * priorities in `levels`, the highest first. `engine`: a statement of a solver, with its
 * certificates. `exhausted`: every choice and order was tried.
 */
export const triage = z.discriminatedUnion('proof', [
  z.object({ proof: z.literal('certificate'), levels: triageLevels }),
  z.object({ proof: z.literal('engine'), levels: triageLevels.optional() }),
  z.object({ proof: z.literal('exhausted') }),
])
export type Triage = z.infer<typeof triage>

/** A VM that stays down in a partial plan, and the rule or lack of capacity that is the cause. */
const unplaced = z.object({
  vm: z.string(),
  reason: z.string(),
  priority: z.number().int().optional(),
  haGroup: z.string().nullable().optional(),
  /** VMs of lower priority that get a place in this plan. */
  overtakenBy: z.array(z.string()).optional(),
})
export type Unplaced = z.infer<typeof unplaced>

/**
 * Why not all VMs can be placed. `core`: rules and limits that contradict each other; if any one of
 * them is removed, the contradiction ends. `repairs`: single changes, each of which gave a plan
 * when it was tried. `drop_racks` (`use_rack_constraints: false`) is also listed if it only starts
 * more important VMs.
 */
const obstacle = z.object({
  text: z.string(),
  core: z.array(z.object({ kind: z.enum(['ram', 'cpu', 'ha_group', 'pins', 'vm']), name: z.string() })),
  repairs: z.array(
    z.object({
      kind: z.enum(['more_ram', 'more_cpu', 'drop_group', 'drop_pins', 'leave_down', 'drop_racks']),
      name: z.string(),
      /** MiB of RAM, or thousandths of a CPU, to add; null if the repair adds no capacity. */
      amount: z.number().int().nullable(),
      migrations: z.number().int(),
      text: z.string(),
    }),
  ),
})
export type Obstacle = z.infer<typeof obstacle>

/**
 * The outcome of one more failure, for each host or, with rack constraints, each rack. `restarted`:
 * all VMs restart in the free capacity. `moved`: all VMs restart after others are moved.
 * `not_found`: no place for all VMs was found in time, which proves nothing, unless `lacks` gives
 * the total shortage of the remaining hosts.
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
  /** The number of live migrations. Starts of stranded VMs are not counted. */
  migrations: z.number().int(),
  /**
   * Every plan for all VMs needs at least this many migrations. At most `migrations - lowerBound`
   * can still be saved.
   */
  lowerBound: z.number().int(),
  proof,
  unplaced: z.array(unplaced),
  /** Absent if a better choice of VMs may exist, or if an older release made the plan. */
  triage: triage.optional(),
  obstacle: obstacle.nullable(),
  standing: standing.nullable(),
  reason: z.string().nullable(),
  /**
   * Whether a time limit ended a search, so that more time may find another plan. Without a time
   * limit, one seed always gives one plan. Not stored.
   */
  isTimeUp: z.boolean().optional(),
})
export type Plan = z.infer<typeof plan>

/**
 * The part of a plan that the platform does itself: a forecast of its fencing and restarts, for
 * which Nightshift sends no command.
 */
export const planForecast = z.object({
  /** VMs that the platform itself starts, on hosts that it chooses. */
  restarts: z.array(z.string()),
  /** VMs that the platform would also start, but for which it has no room. */
  staysDown: z.array(z.string()),
})
export type PlanForecast = z.infer<typeof planForecast>

/**
 * A stored plan. `execute_migration` takes its id, so that a model cannot invent sizes or steps.
 */
export const proposal = plan.extend({
  id: z.string(),
  incidentId: z.string().nullable(),
  intent: placementIntent,
  hostIds: z.array(z.string()),
  /** SHA-256 of the ordered steps. Proposals with equal steps are one plan. */
  planDigest: z.string(),
  /** SHA-256 of the facts behind the plan: hosts, VMs, and the places of the VMs. */
  stateFingerprint: z.string(),
  /** False if hosts or VMs are invented. A plan with invented hosts is never executed. */
  fromInventory: z.boolean(),
  createdAt: z.string(),
})
export type Proposal = z.infer<typeof proposal>

const step = planStep.extend({
  needs: planStep.shape.needs.default([]),
  wave: planStep.shape.wave.nullable().default(null),
})

/** The proof about VMs that stay down, as a dry run shows it: its kind and its priorities. */
const triageTold = z.object({
  proof: z.enum(triage.options.map((each) => each.shape.proof.value)),
  certified: z.array(z.number().int()),
})
export type TriageTold = z.infer<typeof triageTold>

/**
 * The plan in the dry run of an approval. Parts that an older approval lacks are absent or empty.
 */
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
 * Reads the plan of a dry run. Null if the dry run has no plan or an unknown field; the dry run is
 * then shown unchanged.
 */
export function planOfDryRun(details: Record<string, unknown>): DryRunPlan | null {
  return dryRunPlan.safeParse(details).data ?? null
}

/** A stored plan with the problem that it solves. */
export const proposalWithProblem = z.object({
  proposal,
  problem: placementProblem,
  /** Why each live host cannot take a VM that stays down after the steps, short and in full. */
  barred: z.array(z.object({ vm: z.string(), host: z.string(), short: z.string(), text: z.string() })).default([]),
})
export type BarredVm = z.infer<typeof proposalWithProblem>['barred'][number]
export type ProposalWithProblem = z.infer<typeof proposalWithProblem>
