import type { Db, Trx } from './connect.ts'

/** The database's clock, the only one that decides anything: UTC with microseconds. A test schema can move it. */
export async function databaseTime(db: Db | Trx): Promise<string> {
  const { now } = await db.selectNoFrom(({ fn }) => fn<string>('nightshift_now').as('now')).executeTakeFirstOrThrow()
  return now
}
