import { program } from './program.ts'
import { runCommand } from './run-command.ts'

await runCommand(program(), process.argv)
