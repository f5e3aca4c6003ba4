import { styleText } from 'node:util'
import { inertJsonText, inertOutput } from './inert.ts'

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
