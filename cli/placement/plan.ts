import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { CommandFailed } from '../exit-code.ts'
import { print, printJson } from '../terminal.ts'
import { drawOverview, legend } from './picture.ts'
import { formatPlan } from './plan-text.ts'
import {
  exitByState,
  readProblemInTime,
  type SolveOptions,
  solveWithProgress,
  withGap,
  withSolveOptions,
} from './solving.ts'

type PlanOptions = SolveOptions & { out?: string; picture?: boolean }

export function addPlanCommand(parent: Command): void {
  withSolveOptions(
    parent
      .command('plan')
      .description('a verified plan with the fewest live migrations, what shows that, and who stays down')
      .argument('<file>', 'hosts and VMs as YAML or JSON; - for stdin')
      .option('--picture', 'draw the hosts before and after')
      .option('--out <file>', 'write the plan as JSON there, for "placement verify"'),
  )
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan examples/placement.yaml\n  nightshift placement plan --json - < cluster.yaml\n\nExits with 8 when some stay down, 9 when it is proved that there is no plan, 10 when none was found in time.',
    )
    .action(async (file: string, options: PlanOptions) => {
      const [problem, left] = await readProblemInTime(file, options)
      const plan = await solveWithProgress(problem, left)
      if (options.out) writePlan(options.out, withGap(plan))
      if (options.json) printJson(withGap(plan))
      else {
        print(formatPlan(problem, plan))
        if (options.picture) print(['', ...drawOverview(problem, plan.steps), legend].join('\n'))
      }
      exitByState(plan)
    })
}

function writePlan(file: string, value: unknown): void {
  try {
    writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
  } catch (error) {
    throw new CommandFailed('error', `${file} cannot be written: ${error instanceof Error ? error.message : error}`)
  }
}
