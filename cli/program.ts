import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { ZodError } from 'zod'
import { ApiProblem, CommandFailed, exitCodes, type Outcome } from './errors.ts'
import { paint, printNote } from './ui/terminal.ts'
import { inert, inertJsonText } from './ui/text.ts'

/** Each command by its first word, in the order of the help, with the file that defines it. */
const commands: Record<string, () => Promise<(root: Command) => void>> = {
  start: async () => (await import('./start.ts')).addStartCommand,
  status: async () => (await import('./status.ts')).addStatusCommand,
  login: async () => (await import('./login.ts')).addLoginCommand,
  logout: async () => (await import('./login.ts')).addLogoutCommand,
  doctor: async () => (await import('./doctor.ts')).addDoctorCommand,
  setup: async () => (await import('./start.ts')).addSetupCommand,
  incidents: async () => (await import('./incidents/incidents.ts')).addIncidentsCommand,
  expectations: async () => (await import('./expectations.ts')).addExpectationsCommand,
  alerts: async () => (await import('./alerts.ts')).addAlertsCommand,
  approvals: async () => (await import('./approvals/approvals.ts')).addApprovalsCommand,
  ask: async () => (await import('./incidents/follow.ts')).addAskCommand,
  config: async () => (await import('./config/config.ts')).addConfigCommand,
  inventory: async () => (await import('./resources.ts')).addInventoryCommand,
  resources: async () => (await import('./resources.ts')).addResourcesCommand,
  changes: async () => (await import('./changes.ts')).addChangesCommand,
  model: async () => (await import('./model/model.ts')).addModelCommand,
  sources: async () => (await import('./sources.ts')).addSourcesCommand,
  jobs: async () => (await import('./jobs.ts')).addJobsCommand,
  operators: async () => (await import('./operators.ts')).addOperatorsCommand,
  audit: async () => (await import('./audit.ts')).addAuditCommand,
  verify: async () => (await import('./audit.ts')).addVerifyCommand,
  tokens: async () => (await import('./operators.ts')).addTokensCommand,
  ingest: async () => (await import('./alerts.ts')).addIngestCommand,
  judge: async () => (await import('./policy.ts')).addJudgeCommand,
  policy: async () => (await import('./policy.ts')).addPolicyCommand,
  placement: async () => (await import('./placement/placement.ts')).addPlacementCommand,
  mesh: async () => (await import('./mesh/mesh.ts')).addMeshCommand,
  lab: async () => (await import('./lab/lab.ts')).addLabCommand,
  completion: async () => (await import('./help.ts')).addCompletionCommand,
  help: async () => (await import('./help.ts')).addHelpCommand,
}

/** The version of the package, which the command, the image and the changelog share. */
function readVersion(): string {
  return (JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }).version
}

/**
 * Builds the command that starts with this word, or all commands when no command does. Runs
 * nothing.
 */
export async function buildProgram(firstWord?: string): Promise<Command> {
  const root = new Command('nightshift')
    .description('Investigates infrastructure incidents while people sleep.')
    .version(readVersion(), '--version', 'which version this is')
    .exitOverride()
    .hook('preAction', async (_, action) => (await import('./connection.ts')).completeIds(action))
    .showHelpAfterError('(add --help for what it takes)')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift start\n  nightshift incidents list --status escalated\n\nExit codes: nightshift help exit-codes',
    )
  const one = firstWord && firstWord !== 'help' && Object.hasOwn(commands, firstWord) ? commands[firstWord] : null
  for (const load of one ? [one] : Object.values(commands)) (await load())(root)
  return root
}

/** Runs the command of the arguments and sets the exit code. Prints every error once, on stderr. */
export async function runCommand(program: Command, argv: string[]): Promise<void> {
  // The reader of our output may stop early, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    throw error
  })
  try {
    await program.parseAsync(argv)
  } catch (error) {
    const outcome = toOutcome(error)
    process.exitCode = exitCodes[outcome].code
    if (argv.includes('--json')) printForProgram(error, outcome)
    else printForPerson(error)
  }
}

function toOutcome(error: unknown): Outcome {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 'ok' : 'usage'
  if (error instanceof CommandFailed || error instanceof ApiProblem) return error.outcome
  return 'error'
}

function printForPerson(error: unknown): void {
  // Commander has already printed what is wrong with the command line.
  if (error instanceof CommanderError) return
  const message = toMessage(error)
  if (message !== '') printNote(`${paint('red', '✖')} ${inert(message, { lines: true })}`)
  if (error instanceof ApiProblem && error.remedy) printNote(`  ${error.remedy}`)
}

function printForProgram(error: unknown, outcome: Outcome): void {
  if (error instanceof CommanderError) return
  const problem =
    error instanceof ApiProblem
      ? { ...error.problem, ...(error.remedy && { remedy: error.remedy }) }
      : { title: toMessage(error), status: 0, detail: '', code: outcome }
  if (problem.title !== '') printNote(inertJsonText(problem))
}

function toMessage(error: unknown): string {
  if (error instanceof ZodError) {
    const first = error.issues[0]
    return `This version does not understand an answer of the API: ${first?.path.join('.')} ${first?.message}`
  }
  return error instanceof Error ? error.message : String(error)
}
