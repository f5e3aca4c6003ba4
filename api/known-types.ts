import { typesSeen } from '../db/trust/stops.ts'
import { incidentType } from '../domain/incident.ts'
import { formerTypes } from '../domain/incident-type.ts'
import { similarNames } from '../domain/tool-name.ts'
import type { ApiDeps } from './deps.ts'
import { Problem } from './http/problem.ts'

/** The types of incidents that mean something on this site, and the refusal of a name that means nothing here. */

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

/** A type that no incident, level or runbook has holds nothing back when it is mistyped, and somebody would rely on it. */
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
