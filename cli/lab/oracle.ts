import type { Command } from 'commander'
import { type LabClient, labClient } from '../../lab/client.ts'
import { type Scenario, scenarioName, type Verdict } from '../../lab/oracle.ts'
import { readLocalRun } from '../connection.ts'
import { CommandFailed } from '../errors.ts'
import { parseLabName } from '../ui/options.ts'
import { paint, print, printJson } from '../ui/terminal.ts'
import { inert } from '../ui/text.ts'

/** A client for the lab of the start that runs here. Throws CommandFailed when there is no lab. */
export function connectLab(): LabClient {
  const run = readLocalRun()
  if (!run)
    throw new CommandFailed(
      'error',
      'Nightshift does not run here, and the lab is part of it. Start it with "npm start".',
    )
  if (!run.labUrl || !run.labControlToken) {
    throw new CommandFailed(
      'error',
      'This start has no lab, because the environment names another platform or core API.',
    )
  }
  return labClient(run.labUrl, run.labControlToken)
}

export function addOracleCommand(parent: Command): void {
  parent
    .command('oracle')
    .description('check whether the state is a good end of this scenario; exit 7 when not')
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

/** The verdict of the oracle: a summary, and the failed checks, or with `all` every check. */
export function formatVerdict({ healthy, checks }: Verdict, options: { all?: boolean } = {}): string {
  const wrong = checks.filter(({ ok }) => !ok)
  const sum = healthy
    ? paint('green', `✔ The oracle checked the processes themselves: all ${checks.length} checks hold.`)
    : paint('red', `✖ The oracle disagrees: ${wrong.length} of ${checks.length} checks do not hold.`)
  const shown = options.all ? checks : wrong
  return [sum, ...shown.map(({ ok, name, detail }) => `  ${ok ? '✔' : '✖'} ${inert(name)}: ${inert(detail)}`)].join(
    '\n',
  )
}
