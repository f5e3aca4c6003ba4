import { Command } from 'commander'
import { approvalsCommand } from './approvals/approvals.ts'
import { askCommand } from './ask.ts'
import { configCommand } from './config/config.ts'
import { doctorCommand } from './doctor.ts'
import { helpCommand } from './help.ts'
import { incidentsCommand } from './incidents/incidents.ts'
import { ingestCommand } from './ingest.ts'
import { labCommand } from './lab/lab.ts'
import { startCommand } from './start.ts'
import { statusCommand } from './status.ts'

/** The whole command line. Nothing runs until it is parsed. */
export function program(): Command {
  const root = new Command('nightshift')
    .description('Investigates infrastructure incidents while people sleep.')
    .exitOverride()
    .showHelpAfterError('(add --help for what it takes)')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift start\n  nightshift incidents list --status escalated\n\nExit codes: nightshift help exit-codes',
    )
  startCommand(root)
  statusCommand(root)
  doctorCommand(root)
  incidentsCommand(root)
  approvalsCommand(root)
  askCommand(root)
  configCommand(root)
  ingestCommand(root)
  labCommand(root)
  helpCommand(root)
  return root
}
