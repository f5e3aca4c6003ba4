import { createInterface } from 'node:readline'
import { type DryRunInput, type DryRunResult, dryRunInput, dryRunPolicy } from '../safety/replay.ts'
import { loadSql } from '../safety/sql/inspect.ts'
import { toolFacts } from '../tools/registry.ts'
import type { CliCommand } from './connection.ts'
import { CommandFailed } from './exit-codes.ts'
import { collectValues, inert, paint, print, printJsonLine } from './ui/terminal.ts'

type JudgeOptions = { json?: boolean; host: string[]; directory?: string; rootRead: string[] }

export function addJudgeCommand(program: CliCommand): void {
  program
    .command('judge')
    .takesForeignWords()
    .description('judge commands and calls: run, ask or refuse; runs nothing')
    .argument('[command...]', 'one command; without it, lines of stdin')
    .option('--host <name>', 'a known host that a command may name; repeatable', collectValues, [])
    .option('--directory <path>', 'the directory where the commands would run on a device (default: unknown)')
    .option(
      '--root-read <command>',
      "a read command that a device's manifest allows as root, with spaces between its words; repeatable",
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
    .action(async (words: string[], options: JudgeOptions) => {
      await loadSql()
      if (words.length > 0)
        return printRuling(dryRunPolicy(toSupposition(words.join(' '), options), toolFacts, Date.now()), options)
      let line = 0
      // Reads stdin as a stream, because a direct read fails with EAGAIN if a pipe has no data yet.
      for await (const text of createInterface({
        input: process.stdin,
        crlfDelay: Number.POSITIVE_INFINITY,
      })) {
        line += 1
        if (text.trim() !== '')
          printRuling(dryRunPolicy(parseLine(text, line, options), toolFacts, Date.now()), options)
      }
    })
}

/**
 * Parses one line. A line that begins like JSON must have a known shape, so that JSON is never
 * judged as a command.
 */
function parseLine(text: string, line: number, options: JudgeOptions): DryRunInput {
  if (!text.startsWith('{"')) return toSupposition(text, options)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new CommandFailed('usage', `Line ${line} begins as JSON but is not valid JSON.`)
  }
  const parsed = dryRunInput.safeParse(value)
  if (!parsed.success) {
    throw new CommandFailed('usage', `Line ${line} is neither {"command"} nor {"tool", "args", "state"?}.`)
  }
  return 'command' in parsed.data ? { ...toSupposition(parsed.data.command, options), ...parsed.data } : parsed.data
}

function toSupposition(command: string, { host, directory, rootRead }: JudgeOptions): DryRunInput {
  if (directory?.startsWith('/') === false) throw new CommandFailed('usage', '--directory takes an absolute path.')
  const rootReads = rootRead.map((text) => text.split(/ +/).filter(Boolean))
  return { command, hosts: host, ...(directory && { directory }), ...(rootReads.length > 0 && { rootReads }) }
}

const verdictColours = { run: 'green', ask: 'yellow', refuse: 'red' } as const

function printRuling(supposed: DryRunResult, { json }: JudgeOptions): void {
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
    print(
      `       if no settings on the device change what ${programs.join(' or ')} does; the device checks its settings first`,
    )
  }
  if ('rootRead' in supposed && supposed.rootRead)
    print('       as root, outside the sandbox; the device first checks that only root can change the program')
  if ('hint' in supposed && supposed.hint) print(`       hint: ${inert(supposed.hint)}`)
}
