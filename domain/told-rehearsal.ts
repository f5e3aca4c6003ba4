import { z } from 'zod'

const checkRun = z.object({ argv: z.array(z.string()), exit_code: z.number().nullable(), output: z.string() })

/** What a device answers to a rehearsal: a diff and checks of what was tried in a copy, or facts one a line. */
const rehearsal = z.object({
  diff: z.string().optional(),
  checks: z.array(checkRun).optional(),
  would_change: z.boolean().optional(),
  told: z.array(z.string()).optional(),
  untried: z.array(z.string()).optional(),
  truncated: z.boolean().optional(),
})
const details = z.looseObject({ rehearsal: rehearsal.optional(), notRehearsed: z.string().optional() })

/** A rehearsal as a person reads it: facts and output line by line, then a sentence for each thing that was not tried. */
export type ToldRehearsal = { lines: string[]; untried: string[] }

/** Null for a dry run that holds no rehearsal of a device, and for one that is not understood: it is shown as it is. */
export function toldRehearsal(of: Record<string, unknown>): ToldRehearsal | null {
  const read = details.safeParse(of).data
  if (!read || (!read.rehearsal && read.notRehearsed === undefined)) return null
  const { diff, checks = [], would_change, told = [], untried = [], truncated } = read.rehearsal ?? {}
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
  const why = read.notRehearsed === undefined ? [] : [`Not rehearsed: ${read.notRehearsed}`]
  return { lines, untried: [...why, ...untried] }
}
