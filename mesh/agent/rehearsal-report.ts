import { createHash } from 'node:crypto'
import type { CapabilityOutcome } from './capability.ts'

/** The most lines that a card shows. */
const maxResultLines = 60

/** The most lines of which each line counts. Of more lines only the rough number counts. */
const maxExact = 50

const maxLineCharacters = 500
const maxAboutCharacters = 120

export type RehearsalReport = {
  /** Facts that a person reads on the card, one per line. */
  told: readonly string[]
  /** Parts of the call that were not tried, each as a sentence. */
  untried: readonly string[]
  /** The state for which the approval is valid. A different state needs a new approval. */
  rests: string
  /** Whether the effect itself was tried or listed. If false, only the target was read. */
  tried: boolean
  /**
   * A usual name of the target for the title of the approval: a process by its name, a commit by
   * its subject.
   */
  about?: string
}

/** Reports a dry run that made no copy: `{ told, untried, rests_on, tried }`. */
export function reportOutcome(
  { told, untried, rests, tried, about }: RehearsalReport,
  more: Record<string, unknown> = {},
): CapabilityOutcome {
  const shown = told.slice(0, maxResultLines).map((line) => line.slice(0, maxLineCharacters).toWellFormed())
  if (told.length > maxResultLines) shown.push(`… and ${told.length - maxResultLines} more lines`)
  const named = about === undefined ? {} : { about: about.slice(0, maxAboutCharacters).toWellFormed() }
  const result = { ...more, told: shown, untried: [...new Set(untried)], rests_on: rests, tried, ...named }
  return { ok: true, result, truncated: told.length > maxResultLines }
}

/** Adds the usual name of the target to the outcome of a dry run. */
export function named(outcome: CapabilityOutcome, about: string): CapabilityOutcome {
  if (!outcome.ok) return outcome
  return { ...outcome, result: { ...outcome.result, about: about.slice(0, maxAboutCharacters).toWellFormed() } }
}

/**
 * Reduces a list to the state that a person approves. Every line of a short list counts. Of a long
 * list only the order of magnitude counts, because a growing list would otherwise need a new
 * approval each time.
 */
export function restsOnLines(lines: readonly string[]): string {
  if (lines.length > maxExact) return `about 2^${Math.round(Math.log2(lines.length))} lines`
  return createHash('sha256').update(JSON.stringify(lines)).digest('hex')
}
