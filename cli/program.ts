import { readFileSync } from 'node:fs'
import { Command } from 'commander'

/** Each command by its first word, in the order of the help, with the file to load when it is asked for. */
const commands: Record<string, () => Promise<(root: Command) => void>> = {
  start: async () => (await import('./start.ts')).startCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  login: async () => (await import('./login.ts')).loginCommand,
  logout: async () => (await import('./login.ts')).logoutCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  setup: async () => (await import('./setup.ts')).setupCommand,
  incidents: async () => (await import('./incidents/incidents.ts')).incidentsCommand,
  expectations: async () => (await import('./expectations/expectations.ts')).expectationsCommand,
  approvals: async () => (await import('./approvals/approvals.ts')).approvalsCommand,
  ask: async () => (await import('./ask.ts')).askCommand,
  config: async () => (await import('./config/config.ts')).configCommand,
  inventory: async () => (await import('./inventory/inventory.ts')).inventoryCommand,
  operators: async () => (await import('./operators/operators.ts')).operatorsCommand,
  audit: async () => (await import('./audit/audit.ts')).auditCommand,
  verify: async () => (await import('./verify.ts')).verifyCommand,
  tokens: async () => (await import('./tokens/tokens.ts')).tokensCommand,
  ingest: async () => (await import('./ingest.ts')).ingestCommand,
  judge: async () => (await import('./judge.ts')).judgeCommand,
  policy: async () => (await import('./policy.ts')).policyCommand,
  placement: async () => (await import('./placement/placement.ts')).placementCommand,
  mesh: async () => (await import('./mesh/mesh.ts')).meshCommand,
  lab: async () => (await import('./lab/lab.ts')).labCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
  help: async () => (await import('./help.ts')).helpCommand,
}

/** As the package says: the command, the image and the changelog have one. */
function version(): string {
  return (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version
}

/** The command line that starts with this word; all of it when the word names no command. Nothing runs until it is parsed. */
export async function program(firstWord?: string): Promise<Command> {
  const root = new Command('nightshift')
    .description('Investigates infrastructure incidents while people sleep.')
    .version(version(), '--version', 'which version this is')
    .exitOverride()
    .hook('preAction', async (_, action) => (await import('./full-id.ts')).completeIds(action))
    .showHelpAfterError('(add --help for what it takes)')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift start\n  nightshift incidents list --status escalated\n\nExit codes: nightshift help exit-codes',
    )
  const one = firstWord && firstWord !== 'help' && Object.hasOwn(commands, firstWord) ? commands[firstWord] : null
  for (const load of one ? [one] : Object.values(commands)) (await load())(root)
  return root
}
