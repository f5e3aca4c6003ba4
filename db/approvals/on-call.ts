import { mayDecide } from '../../domain/approvers.ts'
import { listOnCall, type OnCallRule } from '../../domain/on-call.ts'
import { permissions } from '../../domain/permissions.ts'
import { isRouted } from '../../domain/route.ts'
import { whyNoMember } from '../../domain/site-decision.ts'
import { deciderOf, type OperatorRow, operatorByName, typeOfIncident } from '../access/operators.ts'
import { databaseTime } from '../clock.ts'
import type { Trx } from '../connect.ts'
import { type Scope, systemScope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import type { ApprovalRow, IncidentRow } from '../tables.ts'
import { isOwnRun } from './settle.ts'

/**
 * Asks the first person on the configured list who may decide, in the transaction of the request.
 * Null if no rule of the list applies, or if PagerDuty gets the question and its escalation policy
 * asks the next person. With null, everybody who may decide is notified.
 */
export async function askFirst(trx: Trx, approval: ApprovalRow, incident: IncidentRow): Promise<OperatorRow | null> {
  const first = (await nextPeople(trx, approval, incident))[0] ?? null
  if (first)
    await trx.insertInto('approvalAsked').values({ approvalId: approval.id, step: 0, operatorId: first.id }).execute()
  return first
}

/** Lists in order the people who are on call now, may decide and have not answered. */
export async function nextPeople(trx: Trx, approval: ApprovalRow, incident: IncidentRow): Promise<OperatorRow[]> {
  const { id, incidentId, risk, targets, dryRun } = approval
  const at = await databaseTime(trx)
  const rules = (await readSettings(trx)).value<OnCallRule[]>('approval.on_call')
  const names = rules.length > 0 ? listOnCall(rules, { targets, at }) : []
  if (names.length === 0 || (await isWithPagerDuty(trx, incident, at))) return []
  const incidentType = await typeOfIncident(trx, incidentId)
  const voted = await trx.selectFrom('approvalDecision').select('operatorId').where('approvalId', '=', id).execute()
  const found: OperatorRow[] = []
  for (const name of names) {
    const person = await operatorByName(systemScope(trx), name)
    if (!person || incidentType === null || voted.some(({ operatorId }) => operatorId === person.id)) continue
    if (mayDecide(deciderOf(person), { risk, incidentType, targets, at }) ?? whyNoMember(name, dryRun)) continue
    if (!(await isOwnRun(trx, person.id, approval))) found.push(person)
  }
  return found
}

/**
 * Whether a PagerDuty destination gets this question. PagerDuty's escalation policy then asks the
 * next person, and two lists would ask two people.
 */
async function isWithPagerDuty(trx: Trx, { severity, type }: IncidentRow, at: string): Promise<boolean> {
  const rows = await trx
    .selectFrom('destination')
    .select(['kind', 'route'])
    .where('kind', '=', 'pagerduty')
    .where('enabled', '=', true)
    .execute()
  const told = { severity, incidentType: type, page: true }
  return rows.some((row) => isRouted(row, 'approval', told, { hasHeard: false, at }))
}

/** Lists the people who were asked about an approval, in order, with times. */
export async function listAsked({ db }: Scope, approvalId: string): Promise<{ name: string; at: string }[]> {
  return await db
    .selectFrom('approvalAsked')
    .innerJoin('operator', 'operator.id', 'approvalAsked.operatorId')
    .select(['operator.name', 'at'])
    .where('approvalId', '=', approvalId)
    .orderBy('step')
    .execute()
}

/** Finds faults of the on-call list: nobody is on the list, or people on it may not decide. */
export async function lookAtOnCall(scope: Scope): Promise<OnCallState> {
  const rules = (await readSettings(scope.db)).value<OnCallRule[]>('approval.on_call')
  const useless: string[] = []
  for (const name of new Set(rules.flatMap(({ people }) => people))) {
    const person = await operatorByName(scope, name)
    if (!person) useless.push(`${name} is unknown`)
    else if (person.disabledAt !== null) useless.push(`${name} is disabled`)
    else if (!permissions[person.role].includes('decide')) useless.push(`${name} (${person.role}) decides nothing`)
  }
  return { isEmpty: rules.length === 0, useless }
}

export type OnCallState = { isEmpty: boolean; useless: string[] }
