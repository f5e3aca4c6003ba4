import { describeReplacement, passport, type SentPassport, type StoredPassport } from '../../domain/passport.ts'
import { cleanse } from '../../safety/redact.ts'
import { now } from '../clock.ts'
import type { Db } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import { type ModelKey, storeLearned } from './profiles.ts'

/**
 * Stores the result of a model's check in place of the earlier result, with the facts about its
 * server, and records in the audit log who sent it.
 */
export async function keepPassport(db: Db, sent: SentPassport, who: string): Promise<StoredPassport> {
  const { profile, ...clean } = cleanse(sent)
  const { server, model, grade } = clean
  const kept = { grade, measured: JSON.stringify(clean), measuredBy: cleanse(who), measuredAt: now }
  return await db.transaction().execute(async (trx) => {
    const { measuredAt } = await trx
      .insertInto('modelPassport')
      .values({ server, model, ...kept })
      .onConflict((conflict) => conflict.columns(['server', 'model']).doUpdateSet(kept))
      .returning('measuredAt')
      .executeTakeFirstOrThrow()
    if (profile) await storeLearned(trx, { server, model }, profile)
    const detail = `Grade ${grade}, ${clean.points} of ${clean.outOf} points`
    await recordAudit(trx, { who, what: 'model.checked', subject: `${model} at ${server}`.slice(0, 300), detail })
    return { ...clean, measuredAt, withdrawn: null }
  })
}

/**
 * Reads the last result of the model at this server, and whether its grade is still valid; null if
 * the model has no result.
 */
export async function passportOf(db: Db, { server, model }: ModelKey): Promise<StoredPassport | null> {
  const row = await db
    .selectFrom('modelPassport as passport')
    .leftJoin('modelProfile as profile', (join) =>
      join.onRef('profile.server', '=', 'passport.server').onRef('profile.model', '=', 'passport.model'),
    )
    .select(['passport.measured', 'passport.measuredAt', 'profile.identity', 'profile.answeredAs'])
    .where('passport.server', '=', server)
    .where('passport.model', '=', model)
    .executeTakeFirst()
  if (!row) return null
  // Treats a row of another version that cannot be parsed as no result, so that the check is
  // repeated.
  const read = passport.safeParse(row.measured).data
  if (!read) return null
  const { identity, answeredAs, measuredAt } = row
  return { ...read, measuredAt, withdrawn: describeReplacement(read.servedAs, { identity, answeredAs }) }
}
