import { mayDecide } from '../../domain/approvers.ts'
import { whyNoMember } from '../../domain/site-decision.ts'
import { deciderOf, listOperators, typeOfIncident } from '../access/operators.ts'
import { databaseTime } from '../clock.ts'
import type { Scope } from '../scope.ts'
import { isOwnRun } from './settle.ts'

const maxPeople = 1_000
const maxNamed = 20

/**
 * Lists at most twenty people who may decide this approval now and have not answered: people seen
 * most recently first. Uses the rules for a decision, but each decision checks the rules again.
 */
export async function approversOf(
  scope: Scope,
  {
    id,
    incidentId,
    risk,
    targets,
    dryRun,
    decisions,
  }: Parameters<typeof isOwnRun>[2] & { decisions: readonly { operator: string }[] },
): Promise<string[]> {
  const { db } = scope
  const incidentType = await typeOfIncident(db, incidentId)
  if (incidentType === null) return []
  const asked = { risk, incidentType, targets, at: await databaseTime(db) }
  const decided = new Set(decisions.map(({ operator }) => operator))
  const people = (await listOperators(scope, { after: null, limit: maxPeople }))
    .filter(
      (each) =>
        !decided.has(each.name) &&
        mayDecide(deciderOf(each), asked) === null &&
        whyNoMember(each.name, dryRun) === null,
    )
    .sort((a, b) => (b.lastSeenAt ?? '').localeCompare(a.lastSeenAt ?? ''))
  const named: string[] = []
  for (const { id: operatorId, name } of people) {
    if (named.length === maxNamed) break
    if (!(await isOwnRun(db, operatorId, { id, incidentId, risk, targets, dryRun }))) named.push(name)
  }
  return named
}
