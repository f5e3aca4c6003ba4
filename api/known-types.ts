import { typesSeen } from '../db/trust/stops.ts'
import { incidentType } from '../domain/incident.ts'
import { formerTypes } from '../domain/incident-type.ts'
import { similarNames } from '../domain/tool-name.ts'
import type { ApiDeps } from './deps.ts'
import { Problem } from './http/problem.ts'

/** Incident types that exist in this installation, and the refusal of an unknown name. */

export function missingHere(
  what: string,
  name: string,
  known: readonly string[],
  remedy: string,
  done = 'stopped',
): Problem {
  const similar = similarNames(name, known)
  return new Problem(
    404,
    'NOT_FOUND',
    `There is no ${what} ${name}: nothing was ${done}. ${similar.length > 0 ? `Did you mean ${similar.join(' or ')}?` : remedy}`,
  )
}

/** Lists the types that runbooks name exactly, without patterns, which fit many types. */
export function typesOfRunbooks(knowledge: ApiDeps['knowledge']): string[] {
  const named = knowledge.list().items.flatMap(({ incidentTypes }) => incidentTypes)
  return named.filter((each) => incidentType.safeParse(each).success)
}

/**
 * Refuses an incident type that no incident and no runbook has. A stop with a mistyped name would
 * block nothing.
 */
export async function requireType(
  { db, knowledge }: Pick<ApiDeps, 'db' | 'knowledge'>,
  type: string,
  done: 'stopped' | 'set',
): Promise<void> {
  const { isKnown, types } = await typesSeen(db, [type, ...formerTypes(type)])
  const told = typesOfRunbooks(knowledge)
  if (isKnown || told.includes(type)) return
  const remedy = '"nightshift incidents list" shows the types of incidents.'
  throw missingHere('incident of type', type, [...new Set([...types, ...told])], remedy, done)
}
