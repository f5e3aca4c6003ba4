import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command, Option } from 'commander'
import { commandPrefix, spellCommands } from '../domain/own-command.ts'
import { version } from '../domain/version.ts'
import type { CliCommand } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { print, printNote } from './ui/terminal.ts'

export function addManCommand(program: CliCommand): void {
  program
    .command('man')
    .description('a manual page of a command, or with --out a folder with all manual pages')
    .argument('[command]', 'the first word of a command (default: nightshift itself)')
    .option('--out <folder>', 'write nightshift.1 and a page of each command to this folder')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift man incidents | man -l -\n  nightshift man --out ~/.local/share/man/man1',
    )
    .action(async (word: string | undefined, { out }: { out?: string }) => {
      // Loads only the requested command, because `nightshift man` itself loads only one.
      const { buildProgram } = await import('./program.ts')
      const root = await buildProgram(out === undefined && word !== undefined ? word : undefined)
      if (out !== undefined) return writePages(root, out)
      const found = word === undefined ? root : root.commands.find((each) => each.name() === word)
      if (!found) throw new CommandFailed('usage', `There is no command ${word}. "nightshift help" lists all commands.`)
      print(toManPage(found))
    })
}

function writePages(root: CliCommand, folder: string): void {
  mkdirSync(folder, { recursive: true })
  const pages = [root, ...root.commands]
  for (const command of pages) writeFileSync(join(folder, `${pathOf(command).join('-')}.1`), `${toManPage(command)}\n`)
  printNote(`${pages.length} pages are in ${folder}.`)
}

/** Formats the page of a command and its sub-commands, in the format of man(7). */
function toManPage(command: Command): string {
  const path = pathOf(command)
  const spell = (text: string) => spellCommands(text, commandPrefix({}))
  const lines = [
    `.TH "${path.join('-').toUpperCase()}" "1" "" "nightshift ${version}" "Nightshift"`,
    '.SH NAME',
    `${path.join('-')} \\- ${roff(command.summary() || command.description())}`,
    '.SH SYNOPSIS',
    `.B ${roff(path.join(' '))}`,
    roff(command.usage()),
    '.SH DESCRIPTION',
    roff(sentence(command.description())),
    ...optionLines(command),
    ...(path.length === 1 ? command.commands.flatMap(lineOf) : belowOf(command).flatMap(sectionOf)),
    ...(path.length === 1 ? [] : ['.SH SEE ALSO', '.BR nightshift (1)']),
  ]
  return spell(lines.filter(Boolean).join('\n'))
}

const pathOf = (command: Command): string[] => [...(command.parent ? pathOf(command.parent) : []), command.name()]

const belowOf = (command: Command): Command[] => command.commands.flatMap((each) => [each, ...belowOf(each)])

/** Formats one command in the list of nightshift(1). */
const lineOf = (command: Command, index: number): string[] => [
  ...(index === 0 ? ['.SH COMMANDS'] : []),
  '.TP',
  `.BR ${roff(`nightshift-${command.name()}`)} (1)`,
  roff(command.summary() || command.description()),
]

const sectionOf = (command: Command): string[] => [
  `.SH "${roff(pathOf(command).join(' '))}"`,
  `.B ${roff(pathOf(command).join(' '))}`,
  roff(command.usage()),
  '.PP',
  roff(sentence(command.description())),
  ...optionLines(command),
]

const optionLines = (command: Command): string[] =>
  command.options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ flags, description, argChoices }: Option) => [
      '.TP',
      `.B ${roff(flags)}`,
      roff(`${description}${argChoices ? ` (${argChoices.join(', ')})` : ''}`),
    ])

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

/** Escapes text so that roff prints it unchanged and executes no line as a request. */
const roff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^(?=[.'])/gm, '\\&')
