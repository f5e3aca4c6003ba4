import type { Command } from 'commander'
import type { PlacementProblem, Plan } from '../../domain/placement.ts'
import { many } from '../../domain/told-plan.ts'
import { type EngineName, engineNames } from '../../placement/bound/engine.ts'
import { type Progress, solve } from '../../placement/solve.ts'
import { CommandFailed, type Outcome } from '../errors.ts'
import { parseOneOf, parseSeconds, parseWholeNumber } from '../ui/options.ts'
import { readProblem } from './problem-file.ts'

export type SolveOptions = { engine: EngineName; timeout: number; seed: number; json?: boolean }

/** Adds the options of every command that plans. */
export function withSolveOptions(command: Command): Command {
  return command
    .option('--engine <name>', `solver: ${engineNames.join(', ')}`, parseOneOf(engineNames), 'glpk')
    .option(
      '--timeout <seconds>',
      'answer within this time, including reading, with the best plan so far',
      parseSeconds,
      10,
    )
    .option(
      '--seed <n>',
      'seed of the random search; one seed gives one plan, unless time ends the search',
      parseWholeNumber,
      1,
    )
    .option('--json', 'the whole plan as JSON')
}

/** The problem in a file, and the options with the time that remains after reading it. */
export async function readProblemInTime<O extends SolveOptions>(
  file: string,
  options: O,
): Promise<[PlacementProblem, O]> {
  const began = performance.now()
  const problem = await readProblem(file, options.timeout)
  return [problem, { ...options, timeout: Math.max(0.05, options.timeout - (performance.now() - began) / 1_000) }]
}

/** Solves the problem. Shows progress in one line of the terminal, and clears it at the end. */
export async function solveWithProgress(problem: PlacementProblem, options: SolveOptions, what = ''): Promise<Plan> {
  const { engine, timeout, seed } = options
  const began = Date.now()
  let known: Progress | null = null
  const show = () => process.stderr.write(`\r\x1b[K${what}${formatProgress(known, (Date.now() - began) / 1_000)}`)
  const timer = process.stderr.isTTY ? setInterval(show, 100) : null
  try {
    const onProgress = (now: Progress) => {
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

function formatProgress(known: Progress | null, secondsGone: number): string {
  const best = known?.migrations == null ? 'no plan yet' : `best plan: ${many(known.migrations, 'migration')}`
  const bound = known ? `≥ ${known.lowerBound}` : ''
  const left = known && known.unplaced > 0 ? `${known.unplaced} without a place` : ''
  return [`${secondsGone.toFixed(1)} s`, best, bound, left].filter(Boolean).join('  ')
}

const outcomes: Record<Plan['state'], Outcome> = {
  no_action: 'ok',
  planned: 'ok',
  partial: 'partial',
  infeasible: 'infeasible',
  not_found: 'undecided',
}

/**
 * Throws CommandFailed with the exit code for a plan that is not complete. The plan is already
 * printed.
 */
export function exitByState({ state }: Plan): void {
  if (outcomes[state] !== 'ok') throw new CommandFailed(outcomes[state], '')
}

/**
 * The plan with `gap`: how many migrations a better plan might save. Null unless all VMs are
 * placed.
 */
export function withGap(plan: Plan): Plan & { gap: number | null } {
  return { ...plan, gap: plan.state === 'planned' ? Math.max(0, plan.migrations - plan.lowerBound) : null }
}
