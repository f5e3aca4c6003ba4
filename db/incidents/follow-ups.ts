import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import type { EventMetadata } from '../../domain/event-metadata.ts'
import { addWorkingDays } from '../../domain/night.ts'
import { listOnCall, type OnCallRule } from '../../domain/on-call.ts'
import { operatorByName } from '../access/operators.ts'
import { databaseTime } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import { systemScope } from '../scope.ts'
import { readSettings } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import type { Person } from './close-incident.ts'
import { lockIncident } from './incidents.ts'

/**
 * A follow-up: the task, person and date that remain when an incident ends as mitigated. An
 * incident has at most one follow-up. Each change is also a row of the log, and `verify` compares
 * the two.
 */

type FollowUpState = NonNullable<EventMetadata['noted']['followUp']>
type Owner = { ownerId: string | null; group: string | null; name: string | null }

/**
 * Opens the follow-up of an incident that just ended as mitigated, or reopens it with a new date.
 * The caller holds the incident's lock.
 */
export async function openFollowUp(trx: Trx, incident: IncidentRow): Promise<void> {
  const owner = await firstOwner(trx, incident)
  const days = (await readSettings(trx)).value<number>('follow_up.days')
  const dueOn = addWorkingDays((await databaseTime(trx)).slice(0, 10), days)
  const { ownerId } = owner
  await trx
    .insertInto('followUp')
    .values({ incidentId: incident.id, ownerId, dueOn })
    .onConflict((conflict) =>
      conflict.column('incidentId').doUpdateSet({ ownerId, ownerGroup: null, dueOn, closedAt: null, closedBy: null }),
    )
    .execute()
  const text = `Follow-up for ${owner.name ?? 'an owner that a person still has to name'}, due ${dueOn}`
  const followUp = { ownerId, group: null, dueOn, isClosed: false }
  await note(trx, incident.id, systemActor, { code: 'follow_up_opened', text, followUp })
  await enqueueNotification(trx, incident, 'follow_up', text)
}

/**
 * Chooses the last approver who may still sign in, otherwise the person who is on call now,
 * otherwise nobody.
 */
async function firstOwner(trx: Trx, { id, resourceKind, resourceId }: IncidentRow): Promise<Owner> {
  const approver = await trx
    .selectFrom('approvalDecision')
    .innerJoin('approval', 'approval.id', 'approvalDecision.approvalId')
    .innerJoin('operator', 'operator.id', 'approvalDecision.operatorId')
    .select(['operator.id', 'operator.name'])
    .where('approval.incidentId', '=', id)
    .where('decision', '=', 'approve')
    .where('operator.disabledAt', 'is', null)
    .orderBy('approvalDecision.at', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (approver) return { ownerId: approver.id, group: null, name: approver.name }
  const rules = (await readSettings(trx)).value<OnCallRule[]>('approval.on_call')
  const targets = resourceKind && resourceId ? [{ kind: resourceKind, id: resourceId }] : []
  for (const name of listOnCall(rules, { targets, at: await databaseTime(trx) })) {
    const person = await operatorByName(systemScope(trx), name)
    if (person && person.disabledAt === null) return { ownerId: person.id, group: null, name }
  }
  return { ownerId: null, group: null, name: null }
}

/** A person's change of a follow-up. Absent parts stay unchanged. `owner`: the name of a person. */
type FollowUpChange = { owner?: string | null; group?: string | null; dueOn?: string }
/** `unknown owner`: nobody with the given name may sign in. */
export type FollowUpRefusal = 'none' | 'closed' | 'unknown owner'

export async function changeFollowUp(
  db: Db,
  incidentId: string,
  { owner, group, dueOn }: FollowUpChange,
  by: Person,
): Promise<FollowUpRefusal | null> {
  return await db.transaction().execute(async (trx) => {
    const found = await lockOpen(trx, incidentId)
    if (typeof found === 'string') return found
    const person = owner ? await operatorByName(systemScope(trx), owner) : null
    if (owner && (!person || person.disabledAt !== null)) return 'unknown owner'
    const state = {
      ownerId: group ? null : owner === undefined ? found.ownerId : (person?.id ?? null),
      group: owner ? null : group === undefined ? found.ownerGroup : group,
      dueOn: dueOn ?? found.dueOn,
    }
    const { group: ownerGroup, ...rest } = state
    await trx
      .updateTable('followUp')
      .set({ ...rest, ownerGroup })
      .where('incidentId', '=', incidentId)
      .execute()
    const whose = person?.name ?? state.group ?? (state.ownerId === null ? 'nobody yet' : 'the same person')
    const text = `${by.name} changed the follow-up: for ${whose}, due ${state.dueOn}`
    const followUp = { ...state, isClosed: false }
    await note(trx, incidentId, by.actor, { code: 'follow_up_changed', text, followUp })
    return null
  })
}

/** Closes a follow-up with a text about what was done. */
export async function closeFollowUp(
  db: Db,
  incidentId: string,
  said: string,
  by: Person,
): Promise<FollowUpRefusal | null> {
  return await db.transaction().execute(async (trx) => {
    const found = await lockOpen(trx, incidentId)
    if (typeof found === 'string') return found
    const { ownerId, ownerGroup: group, dueOn } = found
    const text = `${by.name} closed the follow-up: ${said}`
    const followUp = { ownerId, group, dueOn, isClosed: true }
    const closedAt = await note(trx, incidentId, by.actor, { code: 'follow_up_closed', text, followUp })
    await trx
      .updateTable('followUp')
      .set({ closedAt, closedBy: by.operatorId })
      .where('incidentId', '=', incidentId)
      .execute()
    return null
  })
}

async function lockOpen(trx: Trx, incidentId: string) {
  if (!(await lockIncident(trx, incidentId))) return 'none'
  const row = await trx
    .selectFrom('followUp')
    .select(['ownerId', 'ownerGroup', 'closedAt'])
    .select(sql<string>`to_char(due_on, 'YYYY-MM-DD')`.as('dueOn'))
    .where('incidentId', '=', incidentId)
    .executeTakeFirst()
  if (!row) return 'none'
  return row.closedAt === null ? row : 'closed'
}

type Noted = {
  code: 'follow_up_opened' | 'follow_up_changed' | 'follow_up_closed'
  text: string
  followUp: FollowUpState
}

async function note(trx: Trx, incidentId: string, actor: string, metadata: Noted): Promise<string> {
  const row = { kind: 'noted' as const, actor, detail: metadata.text, metadata }
  const { event } = await append(trx, incidentId, null, row)
  return event.at
}
