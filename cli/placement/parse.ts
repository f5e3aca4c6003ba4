import { type Flaw, InvalidProblemError } from '../../placement/certificate.ts'
import { parseFile } from '../../placement/document.ts'
import { readPlanFile } from '../../placement/plan-file.ts'
import { readProblemFile } from '../../placement/problem-file.ts'

/** The bytes of a file, and what they describe. `name` is the name of the file. */
export type ParseTask = { kind: 'problem' | 'plan'; bytes: Uint8Array; name: string }
/** `fault` describes the problem with the file as a whole, and is printed before the flaws. */
export type Parsed = { value: unknown } | { fault: string; flaws: Flaw[] }

/** Parses a file. Takes and returns only plain data, so that a thread can run it. */
export function parse({ kind, bytes, name }: ParseTask): Parsed {
  const given = attempt('cannot be read', () => parseFile(bytes, name))
  if ('fault' in given) return given
  return kind === 'problem'
    ? attempt('is not a placement problem', () => readProblemFile(given.value))
    : attempt('is not a plan', () => readPlanFile(given.value))
}

function attempt(fault: string, read: () => unknown): Parsed {
  try {
    return { value: read() }
  } catch (error) {
    if (error instanceof InvalidProblemError) return { fault, flaws: error.flaws }
    throw error
  }
}
