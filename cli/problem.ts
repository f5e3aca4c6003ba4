import { z } from 'zod'
import type { Outcome } from './exit-code.ts'

/** problem+json as the API answers it. */
export const problem = z.looseObject({
  title: z.string(),
  status: z.number().int(),
  detail: z.string().default(''),
  code: z.string().optional(),
})
export type Problem = z.infer<typeof problem>

const outcomeByStatus: Record<number, Outcome> = {
  401: 'auth',
  403: 'auth',
  404: 'notFound',
  409: 'conflict',
  410: 'denied',
  412: 'conflict',
}

/** The API said no, or could not be asked (status 0). */
export class ApiProblem extends Error {
  override name = 'ApiProblem' as const
  readonly problem: Problem
  readonly remedy: string | null
  constructor(problem: Problem, remedy: string | null) {
    super(problem.detail ? `${problem.title}: ${problem.detail}` : problem.title)
    this.problem = problem
    this.remedy = remedy
  }
  get outcome(): Outcome {
    // The environment holds the setting: nobody was faster, and nobody can be.
    if (this.problem.code === 'LOCKED') return 'error'
    return outcomeByStatus[this.problem.status] ?? 'error'
  }
}
