import { commandPrefix, spellCommands } from '../../domain/own-command.ts'
import { getTerminalWidth, inert, paint, print, wrap } from '../ui/terminal.ts'

type StepState =
  | 'there'
  | 'works'
  | 'made'
  | 'written'
  | 'put right'
  | 'would be made'
  | 'would be written'
  | 'would be put right'
  | 'left out'
  | 'not yet'
  | 'failed'

/**
 * A step of setup that was checked or carried out. `remedy` is what a person has to do if it failed
 * or waits.
 */
export type StepRow = { step: string; state: StepState; detail: string; remedy: string | null }

export function row(step: string, state: StepState, detail: string, remedy: string | null = null): StepRow {
  return { step, state, detail, remedy }
}

export function printRow({ step, state, detail, remedy }: StepRow): void {
  const isWaiting = state === 'not yet' || state === 'left out'
  const mark = state === 'failed' ? paint('red', '✖') : isWaiting ? paint('yellow', '!') : paint('green', '✔')
  const indent = ' '.repeat(15)
  const width = getTerminalWidth() - indent.length
  const lines = [`${state}: ${detail}`, ...(remedy ? [remedy] : [])]
  const text = lines
    .map((line) => spellCommands(line, commandPrefix(process.env)))
    .flatMap((line) => line.split('\n'))
    .map((line) => wrap(inert(line), width, indent))
  print(`${mark} ${step.padEnd(12)} ${text.join(`\n${indent}`)}`)
}
