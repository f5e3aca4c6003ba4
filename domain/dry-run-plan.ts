import { z } from 'zod'
import { placementState, planStep, proof, standing, unplaced } from './placement.ts'

const step = planStep.extend({
  needs: planStep.shape.needs.default([]),
  wave: planStep.shape.wave.nullable().default(null),
})

/** The plan that an approval's dry run carries. What older approvals do not know yet is left out or empty. */
const dryRunPlan = z.object({
  steps: z.array(step).min(1),
  state: placementState.optional(),
  migrations: z.number().int().optional(),
  lowerBound: z.number().int().optional(),
  proof: z.enum(proof.options.map((each) => each.shape.kind.value)).optional(),
  unplaced: z.array(unplaced).default([]),
  obstacle: z.string().nullable().default(null),
  standing: standing.nullable().default(null),
})
export type DryRunPlan = z.infer<typeof dryRunPlan>

/** Null for a dry run that is no plan, and for one that is not understood in every field: then it has to be shown as it is. */
export function planOfDryRun(details: Record<string, unknown>): DryRunPlan | null {
  return dryRunPlan.safeParse(details).data ?? null
}
