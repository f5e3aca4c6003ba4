import { formatCount } from '../../domain/format.ts'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { type EngineName, engineNames } from '../../placement/bound/assignment.ts'
import { type SolveProgress, solve } from '../../placement/solve.ts'
import type { CliCommand } from '../connection.ts'
import { CommandFailed, type ExitOutcome } from '../exit-codes.ts'
import { parseOneOf, parseSeconds, parseWholeNumber } from '../ui/terminal.ts'

export type SolveOptions = {
  engine: EngineName
  timeout: number
  seed: number
  json?: boolean
  /**
   * A text that is added to the error if no plan was found because reading took most of the time.
   */
  whyLate?: string
}

/**
 * Adds the options of every planning command. A command that may call the API gets `--json`
 * together with the flags for the API.
 */
export function withSolveOptions(command: CliCommand, { isConnected = false } = {}): CliCommand {
  const solving = command
    .option('--engine <name>', `solver: ${engineNames.join(', ')}`, parseOneOf(engineNames), 'glpk')
    .option(
      '--timeout <seconds>',
      'answer within this time, including reading, with the best plan so far',
      parseSeconds,
      10,
    )
    .option(
      '--seed <n>',
      'seed of the random search; the same seed gives the same plan, unless the time limit ends the search',
      parseWholeNumber,
      1,
    )
  return isConnected ? solving.connected() : solving.option('--json', 'the whole plan as JSON')
}

/** Solves the problem. Shows progress in one line of the terminal, and removes it at the end. */
export async function solveWithProgress(problem: PlacementProblem, options: SolveOptions, what = ''): Promise<Plan> {
  const { engine, timeout, seed } = options
  const began = Date.now()
  let known: SolveProgress | null = null
  const show = () => process.stderr.write(`\r\x1b[K${what}${formatProgress(known, (Date.now() - began) / 1_000)}`)
  const timer = process.stderr.isTTY ? setInterval(show, 100) : null
  try {
    const onProgress = (now: SolveProgress) => {
      known = now
    }
    return await solve(problem, { engine, timeoutMs: timeout * 1_000, seed, onProgress })
  } finally {
    if (timer) {
      clearInterval(timer)
      process.stderr.write('\r\x1b[K')
    }
  }
}

function formatProgress(known: SolveProgress | null, secondsGone: number): string {
  const best = known?.migrations == null ? 'no plan yet' : `best plan: ${formatCount(known.migrations, 'migration')}`
  const bound = known ? `≥ ${known.lowerBound}` : ''
  const left = known && known.unplaced > 0 ? `${known.unplaced} without a place` : ''
  return [`${secondsGone.toFixed(1)} s`, best, bound, left].filter(Boolean).join('  ')
}

const outcomes: Record<Plan['state'], ExitOutcome> = {
  no_action: 'ok',
  planned: 'ok',
  partial: 'partial',
  infeasible: 'infeasible',
  not_found: 'undecided',
}

/**
 * Throws CommandFailed with the exit code for a plan that is not complete. The plan was already
 * printed.
 */
export function exitByState({ state }: Plan, { whyLate = '' }: Pick<SolveOptions, 'whyLate'>): void {
  if (outcomes[state] !== 'ok') throw new CommandFailed(outcomes[state], state === 'not_found' ? whyLate : '')
}

/**
 * Returns the plan with `gap`: how many migrations a better plan might save. Null unless all VMs
 * have a place.
 */
export function withGap(plan: Plan): Plan & { gap: number | null } {
  return { ...plan, gap: plan.state === 'planned' ? Math.max(0, plan.migrations - plan.lowerBound) : null }
}
