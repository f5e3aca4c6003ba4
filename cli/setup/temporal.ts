import { TemporalError } from '../../clients/temporal.ts'
import { readConfig, temporalSettings } from '../../config/settings.ts'
import { type SetupRow, setUpTemporal } from '../../start/temporal.ts'
import type { CliCommand } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { inert, print, printJson, printNote } from '../ui/terminal.ts'

type SetupFlags = { dryRun?: boolean; json?: boolean }

export function addTemporalCommand(parent: CliCommand): void {
  parent
    .command('temporal')
    .description('create only what Nightshift needs in Temporal: its search attributes and the queue’s Schedule')
    .option('--dry-run', 'print what would be done, and change nothing')
    .option('--json', 'JSON for programs')
    .addHelpText(
      'after',
      '\nReads TEMPORAL_* and QUEUE_INTERVAL_SECONDS as the worker does: run the command with the worker’s environment.\n\n' +
        'Example:\n  TEMPORAL_ADDRESS=temporal.example.com:7233 TEMPORAL_TLS=true nightshift setup temporal --dry-run',
    )
    .action(async ({ dryRun = false, json: isJson }: SetupFlags) => {
      const rows = await runSetup(dryRun)
      if (isJson) printJson({ dryRun, rows })
      else for (const { what, state, detail } of rows) print(`${what.padEnd(18)} ${state.padEnd(18)} ${inert(detail)}`)
      const isFailed = rows.some(({ state }) => state === 'failed')
      if (isFailed) throw new CommandFailed('error', 'Temporal is not ready for Nightshift: see above.')
      if (!isJson && rows.every(({ state }) => state === 'there')) printNote('Nothing to do.')
    })
}

async function runSetup(isDryRun: boolean): Promise<SetupRow[]> {
  const config = readConfig()
  // Creates a running Schedule unless AGENT_ENABLED turns the agent off here. A worker would take a
  // paused Schedule for the decision of a person.
  const enabled = !process.env.AGENT_ENABLED || config.AGENT_ENABLED
  const schedule = { taskQueue: 'nightshift', intervalSeconds: config.QUEUE_INTERVAL_SECONDS, enabled }
  try {
    return await setUpTemporal({ settings: temporalSettings(config), schedule, isDryRun })
  } catch (error) {
    throw error instanceof TemporalError ? new CommandFailed('error', error.message) : error
  }
}
