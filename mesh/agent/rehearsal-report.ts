import { createHash } from 'node:crypto'
import type { CapabilityOutcome } from './capability.ts'

/** A card shows no more lines than these. */
const maxResultLines = 60

/** Up to so many lines each counts; of more, only how many there are about. */
const maxExact = 50

const maxLineCharacters = 500
const maxAboutCharacters = 120

export type RehearsalReport = {
  /** What a person reads, one fact a line. */
  told: readonly string[]
  /** Parts that were not tried, a sentence each: nothing is promised about them. */
  untried: readonly string[]
  /** What the decision rests on: another one is asked about again. */
  rests: string
  /** Was the effect itself tried or listed? Else only the place was looked at. */
  tried: boolean
  /**
   * The subject as people call it, for the question's title: a process by name, a commit by its
   * subject.
   */
  about?: string
}

/** A rehearsal without a copy: `{ told, untried, rests_on, tried }`. */
export function reportOutcome(
  { told, untried, rests, tried, about }: RehearsalReport,
  more: Record<string, unknown> = {},
): CapabilityOutcome {
  const shown = told.slice(0, maxResultLines).map((line) => line.slice(0, maxLineCharacters).toWellFormed())
  if (told.length > maxResultLines) shown.push(`… and ${told.length - maxResultLines} lines more`)
  const named = about === undefined ? {} : { about: about.slice(0, maxAboutCharacters).toWellFormed() }
  const result = { ...more, told: shown, untried: [...new Set(untried)], rests_on: rests, tried, ...named }
  return { ok: true, result, truncated: told.length > maxResultLines }
}

/** The outcome of a rehearsal with what people call the thing it is about. */
export function named(outcome: CapabilityOutcome, about: string): CapabilityOutcome {
  if (!outcome.ok) return outcome
  return { ...outcome, result: { ...outcome.result, about: about.slice(0, maxAboutCharacters).toWellFormed() } }
}

/**
 * What a list stands for in the state that a person agrees to. Of a short list every line counts;
 * of a long one its order of magnitude, since a list that grows while a person decides would
 * otherwise be asked about for ever.
 */
export function restsOnLines(lines: readonly string[]): string {
  if (lines.length > maxExact) return `about 2^${Math.round(Math.log2(lines.length))} lines`
  return createHash('sha256').update(JSON.stringify(lines)).digest('hex')
}
