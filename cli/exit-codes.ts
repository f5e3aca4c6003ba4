/** Exit codes for scripts. `help exit-codes` prints them, and docs/reference/cli.md lists them. */
export const exitCodes = {
  ok: { code: 0, meaning: 'done' },
  error: { code: 1, meaning: 'the command failed, or the part that it checked does not work; stderr has the reason' },
  usage: { code: 2, meaning: 'the command line is wrong, or has a value that the API does not know' },
  notFound: { code: 3, meaning: 'not found' },
  auth: { code: 4, meaning: 'no token, an unknown token, or a role that may not do this' },
  conflict: { code: 5, meaning: 'the approval or incident was already decided, closed or changed' },
  denied: { code: 6, meaning: 'the approval was denied, expired or withdrawn' },
  unresolved: { code: 7, meaning: 'the incident ended escalated or cancelled, or its end state is wrong' },
  partial: { code: 8, meaning: 'a plan leaves some VMs without a place, or the loss of a host would' },
  infeasible: { code: 9, meaning: 'it is proved that no plan exists' },
  undecided: { code: 10, meaning: 'no plan was found in time; a plan may still exist' },
  broken: { code: 11, meaning: 'a step of the plan fails, or its certificate does not hold' },
  timeout: { code: 124, meaning: '--timeout ran out' },
  interrupted: { code: 130, meaning: 'Ctrl-C' },
} as const

export type ExitOutcome = keyof typeof exitCodes

/**
 * Ends the command with the exit code of `outcome`. The message, with the error and its remedy,
 * goes to stderr. An empty message prints nothing.
 */
export class CommandFailed extends Error {
  override name = 'CommandFailed' as const
  readonly outcome: ExitOutcome
  readonly what: string
  /** The next step for the person. Null if `what` is enough. */
  readonly remedy: string | null
  constructor(outcome: ExitOutcome, what: string, remedy: string | null = null) {
    super(remedy === null ? what : `${what} ${remedy}`)
    this.outcome = outcome
    this.what = what
    this.remedy = remedy
  }
}
