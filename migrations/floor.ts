import { type Kysely, sql } from 'kysely'

/**
 * Raises the floor. A migration after which older code must not run calls this function. The
 * services of a build that does not know the migration then refuse to run.
 */
export async function raiseFloor(db: Kysely<unknown>, migration: string): Promise<void> {
  await sql`update schema_floor set migration = ${migration}`.execute(db)
}

/**
 * Returns the migration that a build has to know to run on this schema. Null if the schema has no
 * table of the floor yet.
 */
export async function floorOf<T>(db: Kysely<T>): Promise<string | null> {
  const { rows: there } = await sql<{ there: boolean }>`
    select to_regclass('schema_floor') is not null as there`.execute(db)
  if (!there[0]?.there) return null
  const { rows } = await sql<{ migration: string }>`select migration from schema_floor`.execute(db)
  return rows[0]?.migration ?? null
}
