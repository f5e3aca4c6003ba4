import { typesSeen } from '../db/trust/stops.ts'
import { incidentType } from '../domain/incident.ts'
import { formerTypes } from '../domain/incident-type.ts'
import { similarNames } from '../domain/tool-name.ts'
import type { ApiDeps } from './deps.ts'
import { Problem } from './http/problem.ts'

/** Incident types with a meaning on this site, and the refusal of any other name. */

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
    `There is no ${what} ${name} here: nothing was ${done}. ${similar.length > 0 ? `Is it ${similar.join(' or ')}?` : remedy}`,
  )
}

/** Types that a runbook names as they are: a pattern is about many. */
export function typesOfRunbooks(knowledge: ApiDeps['knowledge']): string[] {
  const named = knowledge.list().items.flatMap(({ incidentTypes }) => incidentTypes)
  return named.filter((each) => incidentType.safeParse(each).success)
}

/** A type of no incident, level or runbook holds nothing back when mistyped, though relied on. */
export async function requireType(
  { db, knowledge }: Pick<ApiDeps, 'db' | 'knowledge'>,
  type: string,
  done: 'stopped' | 'set',
): Promise<void> {
  const { isKnown, types } = await typesSeen(db, [type, ...formerTypes(type)])
  const told = typesOfRunbooks(knowledge)
  if (isKnown || told.includes(type)) return
  const remedy = '"nightshift incidents list" shows their types.'
  throw missingHere('incident of type', type, [...new Set([...types, ...told])], remedy, done)
}
