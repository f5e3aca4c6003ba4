/** What a script may rely on. `help exit-codes` prints this table and docs/cli.md repeats it. */
export const exitCodes = {
  ok: { code: 0, meaning: 'done' },
  error: { code: 1, meaning: 'it failed; stderr says why' },
  usage: { code: 2, meaning: 'the command line is wrong' },
  notFound: { code: 3, meaning: 'there is no such thing' },
  auth: { code: 4, meaning: 'no token, an unknown token, or a role that may not do this' },
  conflict: { code: 5, meaning: 'somebody was faster: already decided or closed' },
  denied: { code: 6, meaning: 'the approval was denied, expired or withdrawn' },
  unresolved: { code: 7, meaning: 'the incident ended escalated or cancelled, or its end state is wrong' },
  partial: { code: 8, meaning: 'a plan leaves some VMs without a place, or a death would' },
  infeasible: { code: 9, meaning: 'proved: there is no plan' },
  undecided: { code: 10, meaning: 'no plan was found in time, which proves nothing' },
  broken: { code: 11, meaning: 'the plan breaks at a step, or its certificate does not hold' },
  timeout: { code: 124, meaning: '--timeout ran out' },
  interrupted: { code: 130, meaning: 'Ctrl-C' },
} as const
export type Outcome = keyof typeof exitCodes

/** Ends the command with the code of an outcome. The message goes to stderr as it is; an empty one says nothing. */
export class CommandFailed extends Error {
  override name = 'CommandFailed' as const
  readonly outcome: Outcome
  constructor(outcome: Outcome, message: string) {
    super(message)
    this.outcome = outcome
  }
}

/** problem+json as the API answers it; fields of newer versions are kept. */
export type Problem = { title: string; status: number; detail: string; code?: string; [field: string]: unknown }

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
