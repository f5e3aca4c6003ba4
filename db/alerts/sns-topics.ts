import { sql } from 'kysely'
import type { Alert } from '../../domain/alert.ts'
import type { SnsTopic } from '../../domain/sns-topic.ts'
import { now } from '../clock.ts'
import { type Db, inTransaction, type Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'

/**
 * A confirmation at SNS is valid for three days:
 * https://docs.aws.amazon.com/sns/latest/api/API_ConfirmSubscription.html
 */
const waitingDays = 3
/** Maximum number of topics that wait for a confirmation, because anybody can add a topic. */
const maxWaiting = 50

const id = sql<string>`id::text`.as('id')
const columns = ['arn', 'confirmedAt', 'confirmedBy', 'askedAt'] as const
const isWaiting = sql<boolean>`subscribe_url is not null`.as('isWaiting')

export async function listSnsTopics({ db }: Scope): Promise<SnsTopic[]> {
  return await db
    .selectFrom('snsTopic')
    .select([id, ...columns, isWaiting])
    .orderBy('snsTopic.id')
    .execute()
}

export async function isSnsTopicConfirmed(db: Db, arn: string): Promise<boolean> {
  const row = await db.selectFrom('snsTopic').select('confirmedAt').where('arn', '=', arn).executeTakeFirst()
  return (row?.confirmedAt ?? null) !== null
}

async function countOthers(trx: Trx, arn: string): Promise<number> {
  const others = await trx
    .selectFrom('snsTopic')
    .select((all) => all.fn.countAll<number>().as('count'))
    .where('confirmedAt', 'is', null)
    .where('arn', '!=', arn)
    .executeTakeFirstOrThrow()
  return Number(others.count)
}

/**
 * Stores a topic for a person to confirm; false if too many topics wait. A topic waits until a
 * person decides, but is removed if its confirmation has expired and the list is full. A confirmed
 * topic stays.
 */
export async function askForSnsTopic(db: Db, arn: string, subscribeUrl: string): Promise<boolean> {
  return await inTransaction(db, async (trx) => {
    await sql`select pg_advisory_xact_lock(hashtextextended('sns_topic', 0))`.execute(trx)
    if ((await countOthers(trx, arn)) >= maxWaiting) {
      await sql`
        delete from sns_topic where confirmed_at is null
          and asked_at < nightshift_now() - make_interval(days => ${waitingDays})`.execute(trx)
      if ((await countOthers(trx, arn)) >= maxWaiting) return false
    }
    await trx
      .insertInto('snsTopic')
      .values({ arn, subscribeUrl })
      .onConflict((conflict) => conflict.column('arn').doUpdateSet({ subscribeUrl, askedAt: now }))
      .execute()
    return true
  })
}

/** Finds the address that confirms a waiting topic; null if the topic does not wait. */
export async function waitingSnsTopic(
  { db }: Scope,
  topic: string,
): Promise<{ arn: string; subscribeUrl: string } | null> {
  const row = await db
    .selectFrom('snsTopic')
    .select(['arn', 'subscribeUrl'])
    .where('id', '=', Number(topic))
    .executeTakeFirst()
  return row?.subscribeUrl ? { arn: row.arn, subscribeUrl: row.subscribeUrl } : null
}

/**
 * Accepts the alarms of a topic from now on. `asked`: the address that was used to confirm. If SNS
 * has sent another address since, the topic also waits for that confirmation.
 */
export async function confirmSnsTopic(db: Db, topic: string, asked: string, who: string): Promise<SnsTopic | null> {
  return await inTransaction(db, async (trx) => {
    const row = await trx
      .updateTable('snsTopic')
      .set({ subscribeUrl: sql`nullif(subscribe_url, ${asked})`, confirmedAt: now, confirmedBy: who })
      .where('id', '=', Number(topic))
      .returning([id, ...columns, isWaiting])
      .executeTakeFirst()
    if (!row) return null
    const detail = 'The subscription was confirmed at SNS, and alarms of the topic are accepted'
    await recordAudit(trx, { who, what: 'source.topic_confirmed', subject: row.arn, detail })
    return row
  })
}

/** Stops accepting the alarms of a topic. SNS may continue to send them. */
export async function removeSnsTopic(db: Db, topic: string, who: string): Promise<boolean> {
  return await inTransaction(db, async (trx) => {
    const row = await trx.deleteFrom('snsTopic').where('id', '=', Number(topic)).returning('arn').executeTakeFirst()
    if (!row) return false
    await recordAudit(trx, {
      who,
      what: 'source.topic_removed',
      subject: row.arn,
      detail: 'Alarms of the topic are refused',
    })
    return true
  })
}

/**
 * Whether a later state of this alarm is already stored, according to the sender's times. SNS keeps
 * no order, and a signed message can be sent again.
 */
export async function isOvertaken(db: Db, { source, fingerprint }: Alert, changedAt: string): Promise<boolean> {
  const newer = await db
    .selectFrom('alert')
    .select('id')
    .where('source', '=', source)
    .where('fingerprint', '=', fingerprint)
    .where((where) =>
      where.or([
        where.and([where('startGiven', '=', true), where('startsAt', '>', changedAt)]),
        where.and([where('endReceivedAt', 'is not', null), where('endsAt', '>', changedAt)]),
      ]),
    )
    .limit(1)
    .executeTakeFirst()
  return newer !== undefined
}
