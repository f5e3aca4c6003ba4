import { Command } from 'commander'
import { startCommand } from './start.ts'

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
  return root
}
