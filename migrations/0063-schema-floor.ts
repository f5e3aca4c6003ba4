import { type Kysely, sql } from 'kysely'

/**
 * Records the oldest schema that a build has to know to run on the current schema. A build that
 * does not know this oldest schema refuses to start. A build that knows it can run beside a newer
 * build, and start again. Migrations with which older code cannot work raise the floor
 * (`migrations/floor.ts`).
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table schema_floor (
      singleton boolean primary key default true check (singleton),
      migration text not null
    )`.execute(db)
  await sql`insert into schema_floor (migration) values ('0063-schema-floor')`.execute(db)
  await sql`grant select on schema_floor to nightshift_app`.execute(db)
}
