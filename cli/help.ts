import type { Command } from 'commander'
import { exitCodes } from './exit-code.ts'
import { print } from './terminal.ts'
import { wrap } from './wrap.ts'

export function addHelpCommand(program: Command): void {
  const help = program
    .command('help')
    .description('this help, that of a command, or "help exit-codes"')
    .argument('[words...]', 'a command, or exit-codes')
    .addHelpText('after', '\nExample:\n  nightshift help approvals approve\n  nightshift help exit-codes')
    .action((words: string[]) => {
      if (words[0] === 'exit-codes') return print(formatExitCodes())
      let command: Command | undefined = program
      for (const each of words) command = command?.commands.find((candidate) => candidate.name() === each)
      if (!command) return help.error(`error: there is no command "${words.join(' ')}"`)
      command.outputHelp()
    })
}

function formatExitCodes(): string {
  const rows = Object.values(exitCodes).map(
    ({ code, meaning }) => `  ${String(code).padStart(3)}  ${wrap(meaning, 72, '       ')}`,
  )
  return ['Exit codes:', ...rows].join('\n')
}
