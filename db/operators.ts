import { sql } from 'kysely'
import { newId } from '../domain/id.ts'
import { type Decider, mayDecide, type PersonRole } from '../domain/operator.ts'
import type { Risk } from '../domain/tool.ts'
import type { Db, Trx } from './connect.ts'
import { typeOfIncident } from './incident-type.ts'
import { now } from './time.ts'

export type OperatorRow = {
  id: string
  name: string
  role: PersonRole
  maxRisk: Risk
  incidentTypes: string[] | null
  createdAt: string
  disabledAt: string | null
  /** Who vouches for this person and gives their role; null for people who were made here. */
  issuer: string | null
  /** When a token or a browser of theirs was last used, to some minutes. */
  lastSeenAt: string | null
  /** Who they are at Slack: a button that is pressed there is pressed by them. */
  slackUserId: string | null
}

function operators(db: Db) {
  return db
    .selectFrom('operator')
    .select(['id', 'name', 'role', 'maxRisk', 'incidentTypes', 'createdAt', 'disabledAt', 'issuer', 'slackUserId'])
    .select((where) =>
      where
        .selectFrom('apiToken')
        .whereRef('apiToken.operatorId', '=', 'operator.id')
        .select(({ fn }) => fn.max('lastUsedAt').as('lastSeenAt'))
        .as('lastSeenAt'),
    )
}

export async function operatorById(db: Db, id: string): Promise<OperatorRow | null> {
  return (await operators(db).where('id', '=', id).executeTakeFirst()) ?? null
}

export async function operatorByName(db: Db, name: string): Promise<OperatorRow | null> {
  return (await operators(db).where('name', '=', name).executeTakeFirst()) ?? null
}

/** The person with this Slack member id, as an admin set it; may be disabled. */
export async function operatorBySlackUser(db: Db, slackUserId: string): Promise<OperatorRow | null> {
  return (await operators(db).where('slackUserId', '=', slackUserId).executeTakeFirst()) ?? null
}

export async function listOperators(db: Db, page: { after: string | null; limit: number }): Promise<OperatorRow[]> {
  let query = operators(db).orderBy('name').limit(page.limit)
  if (page.after) query = query.where('name', '>', page.after)
  return await query.execute()
}

type OperatorChange = {
  name: string
  role: PersonRole
  maxRisk: Risk
  incidentTypes: readonly string[] | null
  disabled: boolean
  /** Left out: as it was. */
  slackUserId?: string | null
}

/** Makes a person, or changes the one of that name; answers what was before (null: nobody) and what is now. */
export async function putOperator(
  trx: Trx,
  { name, role, maxRisk, incidentTypes, disabled, slackUserId }: OperatorChange,
): Promise<{ before: OperatorRow | null; now: OperatorRow }> {
  const before = (await operators(trx).where('name', '=', name).forUpdate().executeTakeFirst()) ?? null
  const types = incidentTypes && JSON.stringify(incidentTypes)
  const disabledAt = disabled ? sql<string>`coalesce(operator.disabled_at, nightshift_now())` : null
  const { id } = await trx
    .insertInto('operator')
    .values({
      id: newId('opr'),
      ...{ name, role, maxRisk, incidentTypes: types, slackUserId: slackUserId ?? null },
      disabledAt: disabled ? now : null,
    })
    .onConflict((conflict) =>
      conflict.column('name').doUpdateSet({ role, maxRisk, incidentTypes: types, disabledAt, slackUserId }),
    )
    .returning('id')
    .executeTakeFirstOrThrow()
  return { before, now: (await operatorById(trx, id)) as OperatorRow }
}

/**
 * Why this person may not decide this approval; null when they may. Read at every door where authority is handed out or used:
 * what somebody may can change between the two.
 */
export async function refusalToDecide(
  db: Db,
  operatorId: string,
  approval: { incidentId: string; risk: string },
): Promise<string | null> {
  const operator = await operatorById(db, operatorId)
  const incidentType = await typeOfIncident(db, approval.incidentId)
  if (!operator || incidentType === null) return 'there is no such person or incident'
  return mayDecide(deciderOf(operator), { risk: approval.risk, incidentType })
}

function deciderOf({ name, role, maxRisk, incidentTypes, disabledAt }: OperatorRow): Decider {
  return { name, role, maxRisk, incidentTypes, disabled: disabledAt !== null }
}
