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

/**
 * Colours text where stdout supports it and NO_COLOR is not set. The text must be clear without
 * colour.
 */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

/** Prints the result of a command to stdout. */
export function print(text: string): void {
  process.stdout.write(`${inertOutput(text)}\n`)
}

/** Prints one JSON document, for programs. */
export function printJson(value: unknown): void {
  print(inertJsonText(value, 2))
}

/** Prints one JSON document on one line, for a stream of them. */
export function printJsonLine(value: unknown): void {
  print(inertJsonText(value))
}

/** Prints a message for people to stderr. */
export function printNote(text: string): void {
  process.stderr.write(`${inertOutput(text)}\n`)
}

/** Columns to fill: those of the terminal, at most 100 for legibility. 80 without a terminal. */
export function getTerminalWidth(): number {
  return Math.min(Math.max(process.stdout.isTTY ? process.stdout.columns || 80 : 80, 40), 100)
}

/** Whether a person can answer a question: not in a script or a pipe. */
export function isAskable(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/**
 * Asks a yes-or-no question at the terminal. Any other answer, and the end of input, count as no.
 */
export async function confirm(question: string): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await new Promise((resolve) => {
      lines.question(`${question} [y/N] `, (line) => resolve(/^y(es)?$/i.test(line.trim())))
      lines.once('close', () => resolve(false))
      // Readline catches Ctrl-C: pass it on, so that it ends the command.
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
  }
}

/** Asks at the terminal without echoing the answer. */
export async function askHidden(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve)
      // The end of input counts as an empty line. Ctrl-C is passed on, so that it ends the command.
      lines.once('close', () => resolve(''))
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/**
 * Opens text in the person's editor and returns the saved text. The file is private, and removed
 * afterwards.
 */
export function editText(text: string): string {
  const editor = process.env.VISUAL || process.env.EDITOR || 'vi'
  const directory = mkdtempSync(join(tmpdir(), 'nightshift-edit-'))
  const file = join(directory, 'arguments.json')
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600 })
    // Runs in a shell, as in git: $EDITOR may contain options.
    const { status, error } = spawnSync(`${editor} "$1"`, ['sh', file], { shell: '/bin/sh', stdio: 'inherit' })
    if (error || status !== 0) throw new CommandFailed('error', `${editor} failed. Nothing was decided.`)
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
