import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { CommandFailed } from '../exit-code.ts'
import { data, json } from '../terminal.ts'
import { legend, overview } from './picture.ts'
import { planText } from './plan-text.ts'
import { endBy, problemInTime, type Solving, solved, solving, withGap } from './solving.ts'

type Options = Solving & { out?: string; picture?: boolean }

export function planCommand(parent: Command): void {
  solving(
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
    .action(async (file: string, options: Options) => {
      const [problem, left] = await problemInTime(file, options)
      const plan = await solved(problem, left)
      if (options.out) write(options.out, withGap(plan))
      if (options.json) json(withGap(plan))
      else {
        data(planText(problem, plan))
        if (options.picture) data(['', ...overview(problem, plan.steps), legend].join('\n'))
      }
      endBy(plan)
    })
}

function write(file: string, value: unknown): void {
  try {
    writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`)
  } catch (error) {
    throw new CommandFailed('error', `${file} cannot be written: ${error instanceof Error ? error.message : error}`)
  }
}
