import { type Command, CommanderError } from 'commander'
import { ZodError } from 'zod'
import { commandPrefix, spellCommands } from '../domain/own-command.ts'
import { nameFaults } from '../domain/schema-faults.ts'
import { version } from '../domain/version.ts'
import { ApiProblem } from './api.ts'
import { addCommands } from './commands.ts'
import { CliCommand } from './connection.ts'
import { CommandFailed, type ExitOutcome, exitCodes } from './exit-codes.ts'
import { beQuiet, inert, inertJsonText, paint, printError } from './ui/terminal.ts'

/** Writes commands in the help as they are typed on this machine. */
const spell = (text: string): string => spellCommands(text, commandPrefix(process.env))

/**
 * Builds the program, and runs nothing. Without a first argument, loads all commands. With a first
 * argument, loads only the command of that name, so that a short command stays fast.
 */
export async function buildProgram(firstWord?: string): Promise<CliCommand> {
  const root = new CliCommand('nightshift')
    .usage('<command> [words] [options]')
    .description('Investigates infrastructure incidents while people sleep.')
    .version(version, '--version', 'print the version of Nightshift')
    .exitOverride()
    // A flag belongs to the command before it: in "lab faults --json" it is a flag of "faults".
    .enablePositionalOptions()
    // Lists a command with its name and arguments, without "[options]".
    .configureHelp({ subcommandTerm: (each) => [each.name(), ...wordsOf(each)].join(' ') })
    .configureOutput({
      writeOut: (text) => void process.stdout.write(spell(text)),
      writeErr: (text) => void process.stderr.write(spell(text)),
    })
    .hook('preAction', async (_, action) => {
      if (action.opts().quiet) beQuiet()
      if (action.opts().color === false) process.env.NO_COLOR = '1'
      await (await import('./complete-ids.ts')).completeIds(action)
    })
    .addHelpText(
      'after',
      `
Every command has -h, --help; -q, --quiet; --no-color. Most have --json.
Topics: nightshift help exit-codes, environment, ids, output

Example:
  nightshift start
  nightshift incidents list --status escalated`,
    )
  await addCommands(root, firstWord ?? 'all')
  return root
}

const wordsOf = ({ registeredArguments }: Command): string[] =>
  registeredArguments.map((each) => {
    const name = `${each.name()}${each.variadic ? '...' : ''}`
    return each.required ? `<${name}>` : `[${name}]`
  })

/**
 * Runs the command that the arguments name and sets the exit code. Prints every error once, on
 * stderr.
 */
export async function runCommand(program: Command, argv: string[]): Promise<void> {
  // Ends without an error if the reader of stdout stops early, as `head` does.
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

function toOutcome(error: unknown): ExitOutcome {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 'ok' : 'usage'
  if (error instanceof CommandFailed || error instanceof ApiProblem) return error.outcome
  return 'error'
}

function printForPerson(error: unknown): void {
  // Prints nothing for an error of the command line, because Commander has already printed it.
  if (error instanceof CommanderError) return
  const message = toMessage(error)
  if (message !== '') printError(`${paint('red', '✖')} ${inert(message, { lines: true })}`)
  if (error instanceof ApiProblem && error.remedy) printError(`  ${error.remedy}`)
}

function printForProgram(error: unknown, outcome: ExitOutcome): void {
  if (error instanceof CommanderError) return
  const problem =
    error instanceof ApiProblem
      ? { ...error.problem, ...(error.remedy && { remedy: error.remedy }) }
      : { title: toMessage(error), status: 0, detail: '', code: outcome }
  if (problem.title !== '') printError(inertJsonText(problem))
}

function toMessage(error: unknown): string {
  if (error instanceof ZodError) {
    return `This version cannot read a response of the API: ${nameFaults(error, { max: 1 })}`
  }
  return error instanceof Error ? error.message : String(error)
}
