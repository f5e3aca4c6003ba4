import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { styleText } from 'node:util'
import { InvalidArgumentError } from 'commander'
import { parseTime } from '../../domain/format.ts'
import { hiddenCharacter } from '../../domain/inert-text.ts'
import { commandPrefix, spellCommands } from '../../domain/own-command.ts'
import { CommandFailed } from '../exit-codes.ts'

/**
 * Makes untrusted text harmless for a terminal. Control characters are replaced with their pictures
 * (ESC with ␛), and characters that reorder, hide or break text with U+FFFD. Keeps line breaks only
 * with `lines`.
 */
export function inert(text: string, options: { lines?: boolean } = {}): string {
  return text.replace(unsafe, (character) => {
    const code = character.codePointAt(0) ?? 0
    if (code === 0x0a) return options.lines ? '\n' : ' '
    if (code === 0x09) return ' '
    if (code < 0x20) return String.fromCodePoint(0x2400 + code)
    return code === 0x7f ? '\u2421' : '\uFFFD'
  })
}

/**
 * Makes a complete output harmless before it is written, in case a part of it was not made harmless
 * before. Keeps the colours of `paint`.
 */
function inertOutput(text: string): string {
  return text
    .split(paintSequences)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(unsafeButLayout, (character) => inert(character))))
    .join('')
}

/**
 * Formats JSON that is harmless for a terminal, with the characters escaped that `inert` replaces.
 */
export function inertJsonText(value: unknown, space?: number): string {
  return JSON.stringify(value, null, space).replace(unsafeInJson, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

const unsafe = new RegExp(hiddenCharacter('\\u0000-\\u001f'), 'gu')
const unsafeButLayout = new RegExp(hiddenCharacter('\\u0000-\\u0008\\u000b-\\u001f'), 'gu')
/** The sequences that `paint` writes: weight and colour of letters. No sequence hides a letter. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is about such sequences
const paintSequences = /(\u001b\[(?:0|1|2|3|4|22|23|24|3[0-79]|9[0-7])m)/
// Leaves out characters below U+0020: JSON.stringify escapes them, and its line breaks stay.
const unsafeInJson = new RegExp(hiddenCharacter(''), 'gu')

/**
 * Breaks text at spaces to fit the columns, and indents further lines. Words longer than a line
 * stay whole.
 */
export function wrap(text: string, columns: number, indent = ''): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/ +/)) {
    const longer = line === '' ? word : `${line} ${word}`
    if (longer.length > columns && line !== '') {
      lines.push(line)
      line = word
    } else {
      line = longer
    }
  }
  return [...lines, line].join(`\n${indent}`)
}

type Style = Parameters<typeof styleText>[0]

/**
 * Colours text if stdout supports it and NO_COLOR is not set. The text must be clear without
 * colour.
 */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

/** The line at the bottom of the terminal, which is overwritten. Empty if there is none. */
let foot = ''

/**
 * Shows a line below all other lines, instead of the former line there. Null removes the line. Does
 * nothing if stdout is not a terminal.
 */
export function showFoot(line: string | null): void {
  if (!process.stdout.isTTY) return
  foot = line === null ? '' : inertOutput(line)
  process.stdout.write(`\r\u001b[K${foot}`)
}

/** Prints the result of a command to stdout. */
export function print(text: string): void {
  if (foot !== '') process.stdout.write('\r\u001b[K')
  foot = ''
  process.stdout.write(`${inertOutput(text)}\n`)
}

/** Prints one JSON document, for programs. */
export function printJson(value: unknown): void {
  print(inertJsonText(value, 2))
}

/** Prints one JSON document on one line, for a stream of documents. */
export function printJsonLine(value: unknown): void {
  print(inertJsonText(value))
}

let isQuiet = false

/** Suppresses notes from now on, for `--quiet`. Results and errors are still printed. */
export function beQuiet(): void {
  isQuiet = true
}

/** Prints a message for people to stderr, with commands as they are typed on this machine. */
export function printNote(text: string): void {
  if (!isQuiet) printError(text)
}

/** Prints text to stderr that is needed even with `--quiet`: errors, and questions. */
export function printError(text: string): void {
  process.stderr.write(`${inertOutput(spellCommands(text, commandPrefix(process.env)))}\n`)
}

/**
 * Returns the number of columns to fill: those of the terminal, at most 100; 80 without a terminal.
 */
export function getTerminalWidth(): number {
  return Math.min(Math.max(process.stdout.isTTY ? process.stdout.columns || 80 : 80, 40), 100)
}

/** Whether a person can answer a question, which is not possible in a script or a pipe. */
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
      // Passes on Ctrl-C, which Readline catches, so that it ends the command.
      lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.close()
  }
}

/**
 * Asks for one line at the terminal. The end of input counts as Ctrl-C, so that no question hangs.
 */
export async function askLine(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return await new Promise((resolve) => {
      lines.question(question, resolve)
      for (const end of ['SIGINT', 'close'] as const) lines.once(end, () => process.kill(process.pid, 'SIGINT'))
    })
  } finally {
    lines.removeAllListeners('close')
    lines.close()
  }
}

/** Asks at the terminal without echoing the answer. */
export async function askHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  // Prints the question when the terminal no longer echoes, so that text pasted at the question is
  // not shown.
  process.stderr.write(question)
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve)
      // Treats the end of input as an empty line. Passes on Ctrl-C, so that it ends the command.
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
    // Runs in a shell, as in git, because $EDITOR may contain options.
    const { status, error } = spawnSync(`${editor} "$1"`, ['sh', file], { shell: '/bin/sh', stdio: 'inherit' })
    if (error || status !== 0) throw new CommandFailed('error', `${editor} failed. Nothing was decided.`)
    return readFileSync(file, 'utf8')
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Makes a parser for a flag whose value is one of `words`. */
export function parseOneOf(words: readonly string[]) {
  return (text: string) => {
    if (!words.includes(text)) throw new InvalidArgumentError(`Give one of ${words.join(', ')}.`)
    return text
  }
}

/** Parses a whole number from 1, written only in digits: `1e2` and `0x10` are refused. */
export function parseWholeNumber(text: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : 0
  if (value < 1) throw new InvalidArgumentError('Write a whole number, at least 1.')
  return value
}

/** Collects the values of a flag that may be repeated. */
export function collectValues(value: string, before: string[]): string[] {
  return [...before, value]
}

/** Makes a parser for the name of a fault or scenario. Accepts dashes instead of underscores. */
export function parseLabName(words: readonly string[]) {
  const parse = parseOneOf(words)
  return (text: string) => parse(text.replaceAll('-', '_'))
}

/** Parses a flag that takes seconds. */
export function parseSeconds(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('Write a number of seconds.')
  return value
}

/** Runs `work`, which stops on a signal. Throws CommandFailed 'timeout' after `limit` seconds. */
export async function withTimeout<T>(
  limit: number | undefined,
  work: (signal?: AbortSignal) => Promise<T>,
): Promise<T> {
  if (limit === undefined) return work()
  const signal = AbortSignal.timeout(limit * 1000)
  const failed = () =>
    new CommandFailed('timeout', `Not finished after ${limit} s. The work continues; only this command stops.`)
  try {
    const result = await work(signal)
    if (signal.aborted) throw failed()
    return result
  } catch (error) {
    throw signal.aborted ? failed() : error
  }
}

const unitMs: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

/**
 * Parses a future time to ISO 8601: a span (`90m`, `8h`, `3d`, `2w`) or a time
 * (`2026-12-01T06:00Z`).
 */
export function parseFutureTime(text: string): string {
  const span = /^(\d{1,5})([mhdw])$/.exec(text.trim())
  const at = span ? Date.now() + Number(span[1]) * (unitMs[span[2] as string] ?? 0) : parseUntil(text.trim())
  if (!Number.isFinite(at))
    throw new InvalidArgumentError(
      'Give a span such as 8h or 3d, or a time on a day that exists, such as 2026-12-01T06:00Z.',
    )
  if (at <= Date.now()) throw new InvalidArgumentError('The time must be in the future.')
  return new Date(at).toISOString()
}

/** Parses a past time to ISO 8601: a span (`90m`, `12h`, `7d`), or a time (`2026-11-24T22:00Z`). */
export function parsePastTime(text: string): string {
  const span = /^(\d{1,5})([mhdw])$/.exec(text.trim())
  const at = span ? Date.now() - Number(span[1]) * (unitMs[span[2] as string] ?? 0) : parseUntil(text.trim())
  if (!Number.isFinite(at))
    throw new InvalidArgumentError(
      'Give a span such as 12h or 7d, or a time on a day that exists, such as 2026-11-24T22:00Z.',
    )
  return new Date(at).toISOString()
}

/** Returns the milliseconds of an ISO 8601 time, or NaN. A date alone means its midnight in UTC. */
function parseUntil(text: string): number {
  return /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?$/.test(text)
    ? parseTime(text)
    : Number.NaN
}
