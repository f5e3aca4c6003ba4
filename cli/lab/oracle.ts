import type { Command } from 'commander'
import { type Scenario, scenarioName } from '../../lab/oracle.ts'
import { CommandFailed } from '../exit-code.ts'
import { oracleVerdict } from '../oracle-verdict.ts'
import { data, json } from '../terminal.ts'
import { labHere } from './client.ts'
import { named } from './named.ts'

export function askOracle(parent: Command): void {
  parent
    .command('oracle')
    .description('is the state what a good end of this scenario looks like? exit 7 when not')
    .argument('<scenario>', scenarioName.options.join(', '), named(scenarioName.options))
    .argument('[target]', 'what was broken')
    .option('--all', 'every check, not only those that fail')
    .option('--json', 'JSON for programs')
    .addHelpText('after', '\nExample:\n  nightshift lab oracle replication_lag db-osl-1 --all')
    .action(async (scenario: Scenario, target: string | undefined, options: { all?: boolean; json?: boolean }) => {
      const verdict = await labHere().oracle(scenario, target)
      if (options.json) json(verdict)
      else data(oracleVerdict(verdict, options))
      if (!verdict.healthy) throw new CommandFailed('unresolved', '')
    })
}
