import { type Decider, mayDecide } from '../../domain/approvers.ts'
import type { DecisionSubject } from '../../domain/decision-right.ts'
import { newId } from '../../domain/digest.ts'
import type { NewSubscription, PushDevice } from '../../domain/push.ts'
import { whyNoMember } from '../../domain/site-decision.ts'
import { cleanse } from '../../safety/redact.ts'
import { databaseTime, now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import type { Scope } from '../scope.ts'
import type { AskedOf, OutboxDestination } from './destinations.ts'

type PushKeys = { publicKey: string; privateKey: string }

/**
 * Reads the key pair of this installation. The first caller creates the pair with `generate`, and
 * every process uses this pair.
 */
export async function pushKeys(db: Db, generate: () => PushKeys): Promise<PushKeys> {
  const stored = () => db.selectFrom('pushKey').select(['publicKey', 'privateKey']).executeTakeFirst()
  const known = await stored()
  if (known) return known
  await db
    .insertInto('pushKey')
    .values(generate())
    .onConflict((conflict) => conflict.doNothing())
    .execute()
  const made = await stored()
  if (!made) throw new Error('the key pair of web push was not stored')
  return made
}

/** Maximum number of browsers of one person. Above this number, the oldest browser is removed. */
const maxDevices = 20

/**
 * Subscribes a person's browser. If the browser was already subscribed, even by another person, it
 * now belongs to the new person.
 */
export async function subscribe(
  db: Db,
  operatorId: string,
  { endpoint, keys: { p256dh, auth } }: NewSubscription,
  name: string,
): Promise<PushDevice> {
  return await db.transaction().execute(async (trx) => {
    const values = { operatorId, p256dh, auth, name: cleanse(name) }
    const row = await trx
      .insertInto('pushSubscription')
      .values({ id: newId('psh'), endpoint, ...values })
      .onConflict((conflict) => conflict.column('endpoint').doUpdateSet(values))
      .returning(['id', 'name', 'createdAt', 'lastSentAt'])
      .executeTakeFirstOrThrow()
    const kept = trx
      .selectFrom('pushSubscription')
      .select('id')
      .where('operatorId', '=', operatorId)
      .orderBy('createdAt', 'desc')
      .orderBy('id', 'desc')
      .limit(maxDevices)
    await trx.deleteFrom('pushSubscription').where('operatorId', '=', operatorId).where('id', 'not in', kept).execute()
    return row
  })
}

/** Lists the reader's own browsers, newest first. */
export async function ownDevices({ db, reader }: Scope): Promise<PushDevice[]> {
  if (reader === 'system' || reader.operatorId === null) return []
  return await db
    .selectFrom('pushSubscription')
    .select(['id', 'name', 'createdAt', 'lastSentAt'])
    .where('operatorId', '=', reader.operatorId)
    .orderBy('createdAt', 'desc')
    .execute()
}

/** Removes a browser of this person. False if the person has no browser with this id. */
export async function unsubscribe(db: Db, operatorId: string, id: string): Promise<boolean> {
  const row = await db
    .deleteFrom('pushSubscription')
    .where('id', '=', id)
    .where('operatorId', '=', operatorId)
    .returning('id')
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Reads the address and keys of a browser. Null if it is unsubscribed, or if its person may not
 * sign in.
 */
export async function subscriptionById(db: Db, id: string) {
  const row = await db
    .selectFrom('pushSubscription')
    .innerJoin('operator', 'operator.id', 'pushSubscription.operatorId')
    .select(['endpoint', 'p256dh', 'auth'])
    .where('pushSubscription.id', '=', id)
    .where('operator.disabledAt', 'is', null)
    .executeTakeFirst()
  return row ?? null
}

/** Records that the push service accepted a message for the browser. */
export async function recordPush(db: Db, id: string): Promise<void> {
  await db.updateTable('pushSubscription').set({ lastSentAt: now }).where('id', '=', id).execute()
}

export async function forgetDevice(db: Db, id: string): Promise<void> {
  await db.deleteFrom('pushSubscription').where('id', '=', id).execute()
}

export const pushPrefix = 'push.'

/** Puts one entry into the outbox for each browser of a person who may decide the question. */
export const pushDestination: OutboxDestination = {
  async entriesFor(trx, trigger, told) {
    if (trigger !== 'approval') return []
    const rows = await devicesOfDeciders(trx)
    const asked = told?.asked && { ...told.asked, incidentType: told.incidentType, at: await databaseTime(trx) }
    const of = told?.asked?.of
    return rows.flatMap(({ id, operatorId, disabledAt, ...decider }) =>
      (of && of !== operatorId) || (asked && whyNot({ ...decider, disabled: disabledAt !== null }, asked) !== null)
        ? []
        : [`${pushPrefix}${id}`],
    )
  },
}

/**
 * Explains why this person may not decide, by the person's own rights and by the group that the
 * configured policy requires; null if the person may.
 */
function whyNot(decider: Decider, asked: DecisionSubject & Pick<AskedOf, 'dryRun'>): string | null {
  return mayDecide(decider, asked) ?? whyNoMember(decider.name, asked.dryRun ?? null)
}

async function devicesOfDeciders(trx: Trx) {
  return await trx
    .selectFrom('pushSubscription')
    .innerJoin('operator', 'operator.id', 'pushSubscription.operatorId')
    .select([
      'pushSubscription.id',
      'operatorId',
      'operator.name',
      'role',
      'maxRisk',
      'incidentTypes',
      'rights',
      'disabledAt',
    ])
    .execute()
}
