import { appendFileSync } from 'node:fs'

/** Leaves a figure of this run for the page of what was verified: `note('started in', '2.1 s')`. */
export function note(name: string, value: string | number): void {
  const file = process.env.NIGHTSHIFT_REAL_FACTS
  if (file) appendFileSync(file, `${name} ${value}\n`)
}
