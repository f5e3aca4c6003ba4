import { readFileSync } from 'node:fs'
import { Command } from 'commander'

/** Each command by its first word, in the order of the help, with the file to load when it is asked for. */
const commands: Record<string, () => Promise<(root: Command) => void>> = {
  start: async () => (await import('./start.ts')).addStartCommand,
  status: async () => (await import('./status.ts')).addStatusCommand,
  login: async () => (await import('./login.ts')).addLoginCommand,
  logout: async () => (await import('./login.ts')).addLogoutCommand,
  doctor: async () => (await import('./doctor.ts')).addDoctorCommand,
  setup: async () => (await import('./setup.ts')).addSetupCommand,
  incidents: async () => (await import('./incidents/incidents.ts')).addIncidentsCommand,
  expectations: async () => (await import('./expectations/expectations.ts')).addExpectationsCommand,
  approvals: async () => (await import('./approvals/approvals.ts')).addApprovalsCommand,
  ask: async () => (await import('./ask.ts')).addAskCommand,
  config: async () => (await import('./config/config.ts')).addConfigCommand,
  inventory: async () => (await import('./inventory/inventory.ts')).addInventoryCommand,
  operators: async () => (await import('./operators/operators.ts')).addOperatorsCommand,
  audit: async () => (await import('./audit/audit.ts')).addAuditCommand,
  verify: async () => (await import('./verify.ts')).addVerifyCommand,
  tokens: async () => (await import('./tokens/tokens.ts')).addTokensCommand,
  ingest: async () => (await import('./ingest.ts')).addIngestCommand,
  judge: async () => (await import('./judge.ts')).addJudgeCommand,
  policy: async () => (await import('./policy.ts')).addPolicyCommand,
  placement: async () => (await import('./placement/placement.ts')).addPlacementCommand,
  mesh: async () => (await import('./mesh/mesh.ts')).addMeshCommand,
  lab: async () => (await import('./lab/lab.ts')).addLabCommand,
  completion: async () => (await import('./completion.ts')).addCompletionCommand,
  help: async () => (await import('./help.ts')).addHelpCommand,
}

/** As the package says: the command, the image and the changelog have one. */
function readVersion(): string {
  return (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version
}

/** The command line that starts with this word; all of it when the word names no command. Nothing runs until it is parsed. */
export async function buildProgram(firstWord?: string): Promise<Command> {
  const root = new Command('nightshift')
    .description('Investigates infrastructure incidents while people sleep.')
    .version(readVersion(), '--version', 'which version this is')
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
