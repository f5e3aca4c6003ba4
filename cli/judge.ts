import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { loadSql } from '../safety/sql/inspect.ts'
import { type Supposed, type Supposition, suppose, supposition } from '../safety/suppose.ts'
import { toolFacts } from '../tools/registry.ts'
import { CommandFailed } from './errors.ts'
import { collectValues } from './ui/options.ts'
import { paint, print, printJsonLine } from './ui/terminal.ts'
import { inert } from './ui/text.ts'

type Options = { json?: boolean; host: string[]; directory?: string; rootRead: string[] }

export function addJudgeCommand(program: Command): void {
  program
    .command('judge')
    .description('what would become of commands and calls: run, ask or refuse; nothing is run')
    .argument('[command...]', 'one command; without it, lines of stdin')
    .option('--host <name>', 'a host that was looked up, so that a command may name it; repeatable', collectValues, [])
    .option('--directory <path>', 'where the commands would run, as on a device; otherwise nobody knows')
    .option(
      '--root-read <command>',
      'a command that the manifest of a device lets root look with, words between spaces; repeatable',
      collectValues,
      [],
    )
    .option('--json', 'one JSON line for each line read, in the same order')
    .addHelpText(
      'after',
      `
Each line is a command, or JSON: {"command": "…"} or {"tool": "…", "args": {…}, "state": {…}}.

Example:
  nightshift judge 'journalctl -u mysql -n 100 | grep -i error'
  nightshift judge --json < commands.txt`,
    )
    .action(async (words: string[], options: Options) => {
      await loadSql()
      if (words.length > 0)
        return printRuling(suppose(toSupposition(words.join(' '), options), toolFacts, Date.now()), options)
      let line = 0
      // A file stream would fail with EAGAIN where a pipe or terminal has nothing to read just now.
      for await (const text of createInterface({
        input: process.stdin,
        crlfDelay: Number.POSITIVE_INFINITY,
      })) {
        line += 1
        if (text.trim() !== '') printRuling(suppose(parseLine(text, line, options), toolFacts, Date.now()), options)
      }
    })
}

/** A line that begins as JSON must be one of the known shapes: guessing would judge something else than was meant. */
function parseLine(text: string, line: number, options: Options): Supposition {
  if (!text.startsWith('{"')) return toSupposition(text, options)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new CommandFailed('usage', `Line ${line} begins as JSON and is none.`)
  }
  const parsed = supposition.safeParse(value)
  if (!parsed.success) {
    throw new CommandFailed('usage', `Line ${line} is neither {"command"} nor {"tool", "args", "state"?}.`)
  }
  return 'command' in parsed.data ? { ...toSupposition(parsed.data.command, options), ...parsed.data } : parsed.data
}

function toSupposition(command: string, { host, directory, rootRead }: Options): Supposition {
  if (directory?.startsWith('/') === false) throw new CommandFailed('usage', '--directory is a path from the root.')
  const rootReads = rootRead.map((text) => text.split(/ +/).filter(Boolean))
  return { command, hosts: host, ...(directory && { directory }), ...(rootReads.length > 0 && { rootReads }) }
}

const verdictColours = { run: 'green', ask: 'yellow', refuse: 'red' } as const

function printRuling(supposed: Supposed, { json }: Options): void {
  if (json) {
    printJsonLine(supposed)
    return
  }
  const what = 'command' in supposed ? supposed.command : `${supposed.tool} ${JSON.stringify(supposed.arguments)}`
  print(`${paint(verdictColours[supposed.verdict], supposed.verdict.padEnd(6))} ${inert(what)}`)
  print(`       ${supposed.code}: ${inert(supposed.reason)}`)
  if ('rewrite' in supposed && supposed.rewrite) print(`       instead: ${inert(supposed.rewrite)}`)
  if ('conditions' in supposed && supposed.verdict === 'run' && supposed.conditions.length > 0) {
    const programs = [...new Set(supposed.conditions.map(({ program }) => program))]
    print(`       unless ${programs.join(' or ')} obeys more there: the device looks first`)
  }
  if ('rootRead' in supposed && supposed.rootRead)
    print('       as root, outside of the sandbox: the device looks first whether root alone decides what that is')
  if ('hint' in supposed && supposed.hint) print(`       hint: ${inert(supposed.hint)}`)
}
