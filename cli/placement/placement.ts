import type { Command } from 'commander'
import { explainCommand } from './explain.ts'
import { planCommand } from './plan.ts'
import { simulateCommand } from './simulate.ts'
import { verifyCommand } from './verify.ts'

export function placementCommand(program: Command): void {
  const parent = program
    .command('placement')
    .description('where the VMs of a file could go: plan, check, explain and play; needs nothing running')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan examples/placement.yaml --picture\n  nightshift placement simulate examples/placement.yaml --kill host-3',
    )
  planCommand(parent)
  verifyCommand(parent)
  explainCommand(parent)
  simulateCommand(parent)
}
