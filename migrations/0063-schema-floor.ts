import { type Kysely, sql } from 'kysely'

/**
 * The oldest schema that a build has to know to run on this one. A build that does not know this migration refuses; one that does goes on
 * beside a newer build, and comes up again. Migrations that older code cannot work with raise it (`migrations/floor.ts`).
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
