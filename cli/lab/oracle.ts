import type { Command } from 'commander'
import { type Scenario, scenarioName } from '../../lab/oracle.ts'
import { CommandFailed } from '../exit-code.ts'
import { formatVerdict } from '../oracle-verdict.ts'
import { print, printJson } from '../terminal.ts'
import { connectLab } from './client.ts'
import { parseLabName } from './named.ts'

export function addOracleCommand(parent: Command): void {
  parent
    .command('oracle')
    .description('is the state what a good end of this scenario looks like? exit 7 when not')
    .argument('<scenario>', scenarioName.options.join(', '), parseLabName(scenarioName.options))
    .argument('[target]', 'what was broken')
    .option('--all', 'every check, not only those that fail')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab oracle replication_lag db-osl-1 --all')
    .action(async (scenario: Scenario, target: string | undefined, options: { all?: boolean; json?: boolean }) => {
      const verdict = await connectLab().oracle(scenario, target)
      if (options.json) printJson(verdict)
      else print(formatVerdict(verdict, options))
      if (!verdict.healthy) throw new CommandFailed('unresolved', '')
    })
}
