import { type Command, CommanderError } from 'commander'
import { ZodError } from 'zod'
import { CommandFailed, exitCodes, type Outcome } from './exit-code.ts'
import { inert, inertJsonText } from './inert.ts'
import { ApiProblem } from './problem.ts'
import { paint, printNote } from './terminal.ts'

/** Runs what the arguments ask for and sets the exit code; every error ends here, told once and on stderr. */
export async function runCommand(program: Command, argv: string[]): Promise<void> {
  // Whoever reads our output may have seen enough, as `head` has.
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
  // Commander has already said what is wrong with the line.
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
    return `The API answered something this version does not understand: ${first?.path.join('.')} ${first?.message}`
  }
  return error instanceof Error ? error.message : String(error)
}
