import type { Command } from 'commander'
import { isCommand } from './commands.ts'
import type { CliCommand } from './connection.ts'
import { exitCodes } from './exit-codes.ts'
import { print, wrap } from './ui/terminal.ts'

export function addHelpCommand(program: CliCommand): void {
  const help = program
    .command('help')
    .description('this help, or help for a command or a topic: exit-codes, environment, ids, output')
    .argument('[words...]', 'a command, or a topic')
    .addHelpText('after', '\nExample:\n  nightshift help approvals approve\n  nightshift help exit-codes')
    .action(async (words: string[]) => {
      const [first = ''] = words
      if (words.length === 1 && Object.hasOwn(topics, first)) return print(topics[first]?.() ?? '')
      // Loads the requested command, because `nightshift help` itself loads only one.
      const { buildProgram } = await import('./program.ts')
      let command: Command | undefined = await buildProgram(isCommand(first) ? first : '')
      for (const each of words) command = command?.commands.find((candidate) => candidate.name() === each)
      if (!command) return help.error(`error: there is no command or topic "${words.join(' ')}"`)
      command.outputHelp()
    })
}

const topics: Record<string, () => string> = {
  'exit-codes': () =>
    rows(
      'Exit codes:',
      Object.values(exitCodes).map(({ code, meaning }) => [String(code).padStart(3), meaning]),
    ),
  environment: () =>
    rows('Environment:', [
      ['NIGHTSHIFT_URL', 'where the API is'],
      ['NIGHTSHIFT_TOKEN', 'the bearer token; NIGHTSHIFT_TOKEN_FILE names a file that holds it'],
      ['NIGHTSHIFT_STATE_DIR', 'where "nightshift start" keeps its state'],
      ['NO_COLOR', 'no colours, as --no-color'],
      ['BROWSER', 'the program that opens the page of --web'],
    ]),
  ids: () =>
    rows('Ids:', [
      ['inc_01k…', 'an incident, apr_01k… an approval'],
      ['shortened', 'at a terminal a list shortens ids to the letters that distinguish its rows, at least eight'],
      ['01kabcde', 'you may shorten an id, with or without its prefix. If several ids match, the command lists them'],
    ]),
  output: () =>
    rows('Output:', [
      ['stdout', 'the result; stderr has notes and errors, and -q leaves out the notes'],
      ['--json', 'one JSON document; an error is problem+json on stderr'],
      ['a pipe', 'whole ids, nothing cut and no colours'],
      ['--utc', 'times in UTC instead of local time'],
      ['--web', 'opens the page with this result'],
    ]),
}

function rows(title: string, lines: [string, string][]): string {
  const wide = Math.max(...lines.map(([name]) => name.length))
  const text = lines.map(
    ([name, meaning]) => `  ${name.padEnd(wide)}  ${wrap(meaning, 76 - wide, ' '.repeat(wide + 4))}`,
  )
  return [title, ...text].join('\n')
}
