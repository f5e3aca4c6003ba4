import type { Command } from 'commander'
import { parseSeconds } from '../seconds.ts'
import { type ScenarioName, scenarioNames } from './endings.ts'
import { addBreakCommand, addFaultsCommand, addHealCommand, addStatusCommand } from './faults.ts'
import { parseLabName } from './named.ts'
import { addOracleCommand } from './oracle.ts'
import { playScenario } from './scenario.ts'

type Options = { scenario?: ScenarioName; target?: string; timeout?: number; json?: boolean }

export function addLabCommand(program: Command): void {
  const parent = program
    .command('lab')
    .description('a platform of real processes to break things in')
    .enablePositionalOptions()
    .option(
      '--scenario <name>',
      'break this, follow the incident to its end, ask the oracle',
      parseLabName(scenarioNames),
    )
    .option('--target <target>', 'with --scenario: what to break')
    .option('--timeout <seconds>', 'with --scenario: give up after this long', parseSeconds)
    .option('--json', 'with --scenario: one JSON document at the end')
    .addHelpText(
      'after',
      '\nExample:\n  npm run lab -- --scenario service_down\n  nightshift lab break host_down host-osl-1',
    )
    .action(async ({ scenario, ...options }: Options, self: Command) => {
      if (!scenario) return self.help({ error: true })
      await playScenario({ scenario, ...options })
    })
  addFaultsCommand(parent)
  addBreakCommand(parent)
  addHealCommand(parent)
  addOracleCommand(parent)
  addStatusCommand(parent)
}
