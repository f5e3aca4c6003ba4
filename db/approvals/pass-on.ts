import { sql } from 'kysely'
import { systemActor } from '../../domain/event.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { append } from '../log/append.ts'
import { waitsForMorning } from '../outbox/wake-budget.ts'
import { tellAsked } from './ask.ts'
import { nextPeople } from './on-call.ts'

/** Seconds without an answer after which the next person is asked. */
const passAfterSeconds = 300
/**
 * Maximum number of people who are asked one after another: the first at once, the second after 5
 * minutes, the third after 10.
 */
const maxSteps = 3

/**
 * Asks the next person about questions that were undecided for five minutes. Each step happens once
 * over all workers. Returns how many questions were passed on.
 */
export async function passOnPending(db: Db): Promise<number> {
  const waiting = await db
    .selectFrom('approval')
    .select('id')
    .where('status', '=', 'pending')
    .where('announced', '=', true)
    .where('expiresAt', '>', now)
    .where(
      sql<boolean>`exists (select from approval_asked as asked where asked.approval_id = approval.id
        having max(asked.at) <= nightshift_now() - make_interval(secs => ${passAfterSeconds}) and count(*) < ${maxSteps})`,
    )
    .limit(100)
    .execute()
  let passed = 0
  for (const { id } of waiting) if (await db.transaction().execute((trx) => passOne(trx, id))) passed += 1
  return passed
}

async function passOne(trx: Trx, id: string): Promise<boolean> {
  const { incidentId } = await trx
    .selectFrom('approval')
    .select('incidentId')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  const incident = await trx
    .selectFrom('incident')
    .selectAll()
    .where('id', '=', incidentId)
    .forUpdate()
    .executeTakeFirst()
  const approval = await trx.selectFrom('approval').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()
  if (!incident || approval?.status !== 'pending') return false
  const asked = await trx
    .selectFrom('approvalAsked')
    .innerJoin('operator', 'operator.id', 'approvalAsked.operatorId')
    .select(['operatorId', 'step', 'operator.name'])
    .select(
      sql<boolean>`approval_asked.at > nightshift_now() - make_interval(secs => ${passAfterSeconds})`.as('isFresh'),
    )
    .where('approvalId', '=', id)
    .orderBy('step')
    .execute()
  const last = asked.at(-1)
  // Stops, because another worker has already asked the next person.
  if (!last || last.isFresh) return false
  // Stops at a question that wakes nobody.
  if (await waitsForMorning(trx, id)) return false
  const next = (await nextPeople(trx, approval, incident)).find(
    (each) => !asked.some(({ operatorId }) => operatorId === each.id),
  )
  if (!next) return false
  await trx
    .insertInto('approvalAsked')
    .values({ approvalId: id, step: last.step + 1, operatorId: next.id })
    .execute()
  const text = `Asked ${next.name}: no answer from ${last.name} for ${passAfterSeconds / 60} minutes`
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: systemActor,
    detail: text,
    metadata: { code: 'approval_passed', text, approvalId: id },
  })
  await tellAsked(trx, id, 1, next)
  return true
}
