import { type Kysely, sql } from 'kysely'

/** For a migration after which code that does not know it must not run: the services of such a build refuse from then on. */
export async function raiseFloor(db: Kysely<unknown>, migration: string): Promise<void> {
  await sql`update schema_floor set migration = ${migration}`.execute(db)
}

/** The migration that a build has to know to run on this schema; null where the schema is from before there was a place for it. */
export async function floorOf<T>(db: Kysely<T>): Promise<string | null> {
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass('schema_floor') is not null as there`.execute(db)
  if (!there[0]?.there) return null
  const { rows } = await sql<{ migration: string }>`select migration from schema_floor`.execute(db)
  return rows[0]?.migration ?? null
}
