import type { Verdict } from '../lab/oracle.ts'
import { inert } from './inert.ts'
import { paint } from './terminal.ts'

/** What the oracle says: the sum, and each check that does not hold; with `all` each check. */
export function formatVerdict({ healthy, checks }: Verdict, options: { all?: boolean } = {}): string {
  const wrong = checks.filter(({ ok }) => !ok)
  const sum = healthy
    ? paint('green', `✔ The oracle looked at the processes themselves: all ${checks.length} checks hold.`)
    : paint('red', `✖ The oracle says no: ${wrong.length} of ${checks.length} checks do not hold.`)
  const shown = options.all ? checks : wrong
  return [sum, ...shown.map(({ ok, name, detail }) => `  ${ok ? '✔' : '✖'} ${inert(name)}: ${inert(detail)}`)].join(
    '\n',
  )
}
