import type { Command } from 'commander'
import { addExplainCommand } from './explain.ts'
import { addPlanCommand } from './plan.ts'
import { addSimulateCommand } from './simulate.ts'
import { addVerifyCommand } from './verify.ts'

export function addPlacementCommand(program: Command): void {
  const parent = program
    .command('placement')
    .description('where the VMs of a file could go: plan, check, explain and play; needs nothing running')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift placement plan examples/placement.yaml --picture\n  nightshift placement simulate examples/placement.yaml --kill host-3',
    )
  addPlanCommand(parent)
  addVerifyCommand(parent)
  addExplainCommand(parent)
  addSimulateCommand(parent)
}
