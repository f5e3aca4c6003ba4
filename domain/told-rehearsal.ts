/** A rehearsal as a person reads it: facts and output line by line, then a sentence for each thing that was not tried. */
export type ToldRehearsal = { lines: string[]; untried: string[] }

type Fields = Record<string, unknown>

/**
 * What a device answered to a rehearsal: a diff and checks of what was tried in a copy, or facts one a line. Null for a dry run that holds
 * no rehearsal of a device, and for one that is not understood: it is shown as it is. Read by hand, for the page carries no schemas.
 */
export function toldRehearsal({ rehearsal, notRehearsed }: Fields): ToldRehearsal | null {
  if (rehearsal === undefined && notRehearsed === undefined) return null
  if (notRehearsed !== undefined && typeof notRehearsed !== 'string') return null
  if (rehearsal !== undefined && !isFields(rehearsal)) return null
  const { diff, checks = [], would_change, told = [], untried = [], truncated } = rehearsal ?? {}
  if (!isText(diff) || !isTruth(would_change) || !isTruth(truncated) || !isTexts(told) || !isTexts(untried)) return null
  if (!Array.isArray(checks) || !checks.every(isCheck)) return null
  const lines = [
    ...told,
    ...(would_change === false ? ['Tried in a copy: it would change nothing.'] : []),
    ...(diff ? diff.replace(/\n$/, '').split('\n') : []),
    ...checks.flatMap(({ argv, exit_code, output }) => [
      `check ${argv.join(' ')} ended with ${exit_code ?? 'a signal'}`,
      ...output
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => `  ${line}`),
    ]),
    ...(truncated ? ['This is not all of it.'] : []),
  ]
  const why = notRehearsed === undefined ? [] : [`Not rehearsed: ${notRehearsed}`]
  return { lines, untried: [...why, ...untried] }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string | undefined => value === undefined || typeof value === 'string'
const isTruth = (value: unknown): value is boolean | undefined => value === undefined || typeof value === 'boolean'
const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string')

type Check = { argv: string[]; exit_code: number | null; output: string }
const isCheck = (value: unknown): value is Check =>
  isFields(value) &&
  isTexts(value.argv) &&
  (value.exit_code === null || typeof value.exit_code === 'number') &&
  typeof value.output === 'string'
