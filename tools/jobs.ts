import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { attachmentFields } from '../domain/attachment.ts'
import { proof } from '../domain/envelope.ts'
import { jobName, runJobTool } from '../domain/job.ts'
import { idPattern, inventoryKinds } from '../domain/kinds.ts'
import { inventoryKind, resourceRef } from '../domain/registry.ts'
import { risks, type ToolContext } from '../domain/tool.ts'
import { jobLeft } from '../domain/undo.ts'
import { defineTool, reason, sayWrite, state } from './define.ts'
import { ProposalError } from './placement.ts'

/** The effect of the job cannot be determined. The model gets the reason. */
class JobPreparationError extends ProposalError {}

const preparation = z.object({
  targets: z.array(resourceRef),
  identity: z.record(z.string(), z.unknown()),
  stateFingerprint: z.string(),
  asks: z.object({ risk: z.enum(risks), why: z.string() }),
  dryRun: z.object({
    possible: z.boolean(),
    summary: z.string(),
    details: z.record(z.string(), z.unknown()),
    proof: proof.optional(),
    ...attachmentFields,
  }),
})
const observation = z.object({ holds: z.boolean().nullable(), observed: z.string() })

/** The maximum time for the check mode of a job. A job is declared to end within ten minutes. */
const checkWithinMs = 11 * 60_000
const busyWaitMs = 2_000

type Input = { job: string; kind: z.infer<typeof inventoryKind>; id: string; reason: string }

/**
 * Runs a declared job. Needs approval every time, because only the operator who declared the job
 * knows its effect.
 */
export const runJob = defineTool<Input, Record<string, unknown>>({
  name: runJobTool,
  description: 'Run a job that the operator declared for a resource, after approval.',
  input: z.strictObject({
    job: jobName.meta({ description: 'as the context lists it', examples: ['restart-web'] }),
    kind: inventoryKind.describe('of the resource'),
    id: z
      .string()
      .min(1)
      .max(128)
      .regex(idPattern, 'is not an identifier of the inventory')
      .meta({ description: 'its id', examples: ['web-1'] }),
    reason,
  }),
  output: z.looseObject({}),
  effect: 'write',
  risk: 'medium',
  reversible: false,
  names: { id: inventoryKinds },
  kindField: 'kind',
  needs: 'jobs',
  say: (output, { job, id }) => sayWrite(output, `${job} on ${id}`),
  discovers: () => [],
  prepare: async (input, context) => preparation.parse(await ask(input, context, 'preparation')),
  // Limits the age of a dry run, because the result of a check mode is soon outdated.
  dryRunAgesAfterSeconds: 1_800,
  proof: state('the check mode of the job reports that nothing would change'),
  postcondition: {
    withinSeconds: 10,
    check: async (input, _output, context) => observation.parse(await ask(input, context, 'observation')),
  },
  undo: {
    // Returns null, because the arguments do not show what undoes the job. The job's declaration
    // names the job that undoes it, if there is one, and the preparation reads this declaration.
    does: () => null,
    of({ job, kind, id }, output) {
      if (typeof output.undo !== 'string') return { none: `the job ${job} declares none` }
      return { tool: runJobTool, arguments: { job: output.undo, kind, id }, left: jobLeft(job, null) }
    },
  },
  run: ({ job, kind, id, reason: why }, { core, stepKey, ifMatch, signal }) =>
    core.post(
      `/api/v1/jobs/${job}/run`,
      { kind, id, reason: why },
      { idempotencyKey: stepKey, ...(ifMatch ? { ifMatch } : {}), ...(signal && { signal }) },
    ),
})

/** Polls while the job's check runs. The step key ensures that only one check is started. */
async function ask({ job, kind, id }: Input, context: ToolContext, what: 'preparation' | 'observation') {
  const { core, stepKey, signal } = context
  const query = `kind=${kind}&id=${encodeURIComponent(id)}&key=${encodeURIComponent(stepKey)}`
  const untilMs = Date.now() + checkWithinMs
  do {
    const answer = await core.get(`/api/v1/jobs/${job}/${what}?${query}`, signal ? { signal } : {})
    if (answer.ok) {
      const { done, [what]: found } = z.looseObject({ done: z.boolean() }).parse(answer.data)
      if (done) return found
    } else if (answer.status !== 429) {
      throw new JobPreparationError(answer.problem.detail || answer.problem.title)
    } else {
      await sleep(busyWaitMs, undefined, signal && { signal })
    }
  } while (Date.now() < untilMs)
  throw new JobPreparationError(`the check mode of ${job} gave no answer in time`)
}
