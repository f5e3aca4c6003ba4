import { z } from 'zod'
import { type Plan, plan } from '../domain/placement.ts'
import { listFaults } from '../domain/schema-faults.ts'
import { type Flaw, InvalidProblemError } from './certificate.ts'

/** The schema of a plan as `placement plan` writes it, with its gap. */
const writtenPlan = plan.extend({ gap: z.number().int().nullable().optional() })
export type WrittenPlan = Plan & { gap?: number | null | undefined }

const maxFlaws = 20

/**
 * Reads a submitted plan. Throws InvalidProblemError with the path of every wrong field and unknown
 * key, because ignored parts would seem checked.
 */
export function readPlanFile(given: unknown): WrittenPlan {
  const found = writtenPlan.safeParse(given)
  if (!found.success) {
    const flaws = listFaults(found.error, maxFlaws)
    throw new InvalidProblemError(flaws.map(({ field, message }) => ({ path: field || 'the plan', message })))
  }
  const unknown = listUnknownKeys(given, found.data, [])
  if (unknown.length > 0) throw new InvalidProblemError(unknown.slice(0, maxFlaws))
  return found.data
}

/** Lists the keys of the given value that parsing dropped, as deep as the schema of a plan goes. */
function listUnknownKeys(given: unknown, read: unknown, path: string[]): Flaw[] {
  if (given === null || typeof given !== 'object' || read === null || typeof read !== 'object') return []
  return Object.entries(given).flatMap(([key, value]) => {
    const at = [...path, key]
    if (!Object.hasOwn(read, key)) return [{ path: at.join('.').slice(0, 200), message: 'this field is unknown' }]
    return listUnknownKeys(value, (read as Record<string, unknown>)[key], at)
  })
}
