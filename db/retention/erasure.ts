import { sql } from 'kysely'
import { describeOperator } from '../../domain/authority-words.ts'
import { newId } from '../../domain/digest.ts'
import type { Erasure, ErasureRefusal } from '../../domain/erasure.ts'
import { leavesAnAdmin, type OperatorRow, putOperator } from '../access/operators.ts'
import { now } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { recordAudit } from '../log/audit.ts'
import type { Scope } from '../scope.ts'

/**
 * Counts by table the rows that an erasure of a person would change, and explains why the erasure
 * is refused now. Changes nothing.
 */
export async function previewErasure({ db }: Scope, operatorId: string): Promise<Erasure> {
  return await db.transaction().execute(async (trx) => {
    await allowLong(trx)
    const { rows: why } = await sql<{ why: ErasureRefusal | null }>`
    select why_not_erased(person) as why from operator as person where id = ${operatorId}`.execute(trx)
    return { pseudonym: null, rows: await countRows(trx, operatorId), refusal: why[0]?.why ?? null }
  })
}

/**
 * Raises the time limit of statements, because an erasure reads all logs, which takes longer than
 * usual statements may.
 */
const allowLong = (trx: Trx) => sql`set local statement_timeout = '15min'`.execute(trx)

async function countRows(db: Trx, operatorId: string): Promise<Record<string, number>> {
  const { rows } = await sql<{ ofTable: string; rows: number }>`
    select of_table, rows::int from count_personal(${operatorId})`.execute(db)
  return Object.fromEntries(rows.map(({ ofTable, rows: count }) => [ofTable, count]))
}

/** Thrown inside the transaction to undo the changes that were already made to the person. */
class Refused extends Error {
  readonly why: ErasureRefusal
  constructor(why: ErasureRefusal) {
    super(why)
    this.why = why
  }
}

/**
 * Replaces a person by a pseudonym, permanently. Signs the person out and disables the person. A
 * database function then does all further work, because only it may change rows of chains. Changes
 * everything or nothing; a refusal contains the reason.
 */
export async function erasePerson(db: Db, person: OperatorRow, by: { name: string }): Promise<Erasure> {
  try {
    return await db.transaction().execute(async (trx) => {
      await allowLong(trx)
      // Checked before the person is disabled, because a disabled person is no longer an admin.
      const isAdmin = person.role === 'admin' && person.disabledAt === null
      if (isAdmin && !(await leavesAnAdmin(trx, person.id))) throw new Refused('last admin')
      const rows = await countRows(trx, person.id)
      await signOut(trx, person, by)
      const pseudonym = newId('erased').replace('_', '-').toLowerCase()
      const { rows: said } = await sql<{ outcome: string }>`
        select erase_person(${person.id}, ${pseudonym}, ${by.name}) as outcome`.execute(trx)
      const outcome = said[0]?.outcome
      if (outcome !== 'done') throw new Refused(outcome as ErasureRefusal)
      return { pseudonym, rows, refusal: null }
    })
  } catch (error) {
    if (error instanceof Refused) return { pseudonym: null, rows: {}, refusal: error.why }
    throw error
  }
}

async function signOut(trx: Trx, person: OperatorRow, by: { name: string }): Promise<void> {
  const tokens = await trx
    .selectFrom('apiToken')
    .select(['id', 'revokedAt'])
    .where('operatorId', '=', person.id)
    .execute()
  const ids = tokens.map(({ id }) => id)
  if (ids.length > 0) {
    await trx.deleteFrom('session').where('tokenId', 'in', ids).execute()
    await trx
      .updateTable('apiToken')
      .set({ revokedAt: now })
      .where('id', 'in', ids)
      .where('revokedAt', 'is', null)
      .execute()
  }
  for (const { id, revokedAt } of tokens)
    if (revokedAt === null)
      await recordAudit(trx, {
        who: by.name,
        what: 'token.revoked',
        subject: id,
        detail: 'Ended: its person is erased',
      })
  if (person.disabledAt !== null) return
  const { role, maxRisk, incidentTypes, name } = person
  const { before, now: after } = await putOperator(trx, { name, role, maxRisk, incidentTypes, disabled: true })
  const detail = `From ${describeOperator(before ?? person)} to ${describeOperator(after)}`
  await recordAudit(trx, { who: by.name, what: 'operator.changed', subject: name, detail })
}
