import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { CommandFailed } from '../errors.ts'
import { inertJsonText, inertOutput } from './text.ts'

type Style = Parameters<typeof styleText>[0]

/** Colour where stdout shows it and NO_COLOR does not forbid it; the text says the same without. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

/** What the command was asked for. */
export function print(text: string): void {
  process.stdout.write(`${inertOutput(text)}\n`)
}

/** One JSON document, for programs. */
export function printJson(value: unknown): void {
  print(inertJsonText(value, 2))
}

/** One JSON document of many, each on its line. */
export function printJsonLine(value: unknown): void {
  print(inertJsonText(value))
}

/** What a person should know beside the data. */
export function printNote(text: string): void {
  process.stderr.write(`${inertOutput(text)}\n`)
}

/** Columns to fill. Wider than 100 is harder to read; what is no terminal gets 80. */
export function terminalWidth(): number {
  return Math.min(Math.max(process.stdout.isTTY ? process.stdout.columns || 80 : 80, 40), 100)
}

/** Is there somebody to ask? In a script or a pipe nobody is. */
export function isAskable(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks at the terminal; whatever is not a yes is a no, and so is a line that never comes. */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await new Promise((resolve) => {
      lines.question(`${question} [y/N] `, (line) => resolve(/^y(es)?$/i.test(line.trim())))
      lines.once('close', () => resolve(false))
      // Ctrl-C ends the command as it does everywhere.
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
  }
}

/** Asks at the terminal without showing what is typed. */
export async function askHidden(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve)
      // A line that never comes is an empty one; Ctrl-C ends the command as it does everywhere.
      lines.once('close', () => resolve(''))
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/** Opens the text in the person's editor and answers what it was saved as. The file is theirs alone and gone afterwards. */
export function editText(text: string): string {
  const editor = process.env.VISUAL || process.env.EDITOR || 'vi'
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-edit-'))
  const file = join(directory, 'arguments.json')
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600 })
    // Through a shell, as git does: an editor may come with options.
    const { status, error } = spawnSync(`${editor} "$1"`, ['sh', file], { shell: '/bin/sh', stdio: 'inherit' })
    if (error || status !== 0) throw new CommandFailed('error', `${editor} did not end well. Nothing was decided.`)
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
