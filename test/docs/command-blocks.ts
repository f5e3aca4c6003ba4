import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Commands that a documentation page has its reader type: fenced blocks, and tables marked `<!--
 * run -->`.
 */
export type CommandBlock = {
  page: string
  line: number
  /** Each command as it stands there, with the lines that go on. */
  commands: string[]
  /** The mark before it: why no test runs it, or which one does. */
  mark: { notRun: string } | { runBy: string } | null
}

export const pages = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file))
    .sort(),
]

type Fence = { line: number; language: string; lines: string[]; before: string }

/** Every fenced block, without a list's indentation; `before`: the last line above with words. */
function fencesOf(text: string): Fence[] {
  const fences: Fence[] = []
  let open: (Fence & { indent: number }) | null = null
  let before = ''
  for (const [index, line] of text.split('\n').entries()) {
    const [, indent = '', language = ''] = /^( *)```(\S*)\s*$/.exec(line) ?? []
    const isFence = /^ *```/.test(line)
    if (open && isFence) {
      fences.push(open)
      open = null
    } else if (open) open.lines.push(line.slice(Math.min(open.indent, line.length - line.trimStart().length)))
    else if (isFence) open = { line: index + 1, language, lines: [], before, indent: indent.length }
    if (!open && line.trim() !== '') before = line.trim()
  }
  return fences
}

/** A language's n-th fenced block, from 0: the text that a reader writes into a file. */
export function fileIn(page: string, language: string, nth = 0): string {
  const found = fencesOf(readFileSync(page, 'utf8')).filter((fence) => fence.language === language)
  return `${found[nth]?.lines.join('\n') ?? ''}\n`
}

const programs = new Set(
  `amtool apt-get cat cd chown curl echo git go install kubectl mkdir nightshift node npm openssl pg_dump psql pveum service set sh
systemctl temporal until`.split(/\s+/),
)

/** The program that a line starts: `$ ` and variables before it do not count. */
function programOf(line: string): string {
  return /^(?:\$ )?(?:[A-Z_]+=\S* )*([\w-]+)(?![\w.-])/.exec(line)?.[1] ?? ''
}

/** Commands with their further lines: after a backslash, in quotes, in a here-document. */
export function commandsOf(lines: readonly string[]): string[] {
  const hasPrompt = lines.some((line) => line.startsWith('$ '))
  const commands: string[] = []
  let ending: string | null = null
  let goesOn = false
  for (const line of lines) {
    if (ending !== null || goesOn) commands.push(`${commands.pop()}\n${line}`)
    else if (line.trim() === '' || line.startsWith('#') || (hasPrompt && !line.startsWith('$ '))) continue
    else commands.push(line.replace(/^\$ /, ''))
    const opened: string | undefined = /<<-?\s*'?(\w+)'?/.exec(line)?.[1]
    if (ending !== null) ending = line.trim() === ending ? null : ending
    else if (opened !== undefined) ending = opened
    goesOn = ending === null && line.endsWith('\\')
  }
  return commands
}

/** `<!-- not run: why -->`, `<!-- run by FILE -->`. */
function markOf(line: string): CommandBlock['mark'] {
  const [, how, said = ''] = /^<!-- (not run:|run by) (.+) -->$/.exec(line) ?? []
  return how === undefined ? null : how === 'run by' ? { runBy: said } : { notRun: said }
}

const isShell = (language: string) => ['', 'sh', 'bash', 'console', 'shell'].includes(language)

function blocksIn(page: string, text: string): CommandBlock[] {
  return fencesOf(text).flatMap(({ line, language, lines, before }) => {
    const commands = commandsOf(lines)
    if (!isShell(language) || !programs.has(programOf(commands[0] ?? ''))) return []
    return [{ page, line, commands, mark: markOf(before) }]
  })
}

/** The first cells of a table below `<!-- run -->`. */
function tablesIn(page: string, text: string): CommandBlock[] {
  return [...text.matchAll(/^<!-- run -->\n+((?:\|.*\n?)+)/gm)].map(({ 1: table = '', index }) => ({
    page,
    line: text.slice(0, index).split('\n').length,
    commands: [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, command = '']) => command),
    mark: null,
  }))
}

/** Every block of commands of a page, in its order. */
export function commandBlocks(page: string, text = readFileSync(page, 'utf8')): CommandBlock[] {
  return [...blocksIn(page, text), ...tablesIn(page, text)].sort((a, b) => a.line - b.line)
}
