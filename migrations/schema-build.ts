import { readFileSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }

/** This build is older than the schema that it meets. */
export class NewerSchemaError extends Error {
  override name = 'NewerSchemaError' as const
}

/** Notes that this build applied these migrations. A schema from before there was a place for it notes nothing. */
export async function noteBuild(db: Kysely<unknown>, applied: readonly string[]): Promise<void> {
  if (applied.length === 0 || !(await exists(db, 'schema_build'))) return
  await sql`
    insert into schema_build (migration, build) select name, ${version} from unnest(${[...applied]}::text[]) name
    on conflict (migration) do nothing`.execute(db)
}

/** What the database has seen beyond these migrations, and which build it takes; null where it has seen nothing else. */
export async function newerThan<T>(db: Kysely<T>, known: readonly string[]): Promise<string | null> {
  if (!(await exists(db, 'kysely_migration'))) return null
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  const unknown = rows.map(({ name }) => name).filter((name) => !known.includes(name))
  if (unknown.length === 0) return null
  const build = await newestBuild(db)
  const needed = build === null ? 'the build that applied it' : `build ${build}, which applied it, or a later one`
  return (
    `The schema is newer than this build (${version}), which does not know ${unknown.join(', ')}. Start ${needed}; ` +
    'or restore the backup from before the upgrade'
  )
}

async function newestBuild<T>(db: Kysely<T>): Promise<string | null> {
  if (!(await exists(db, 'schema_build'))) return null
  const { rows } = await sql<{ build: string }>`
    select build from schema_build order by migration desc limit 1`.execute(db)
  return rows[0]?.build ?? null
}

async function exists<T>(db: Kysely<T>, table: string): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass(${table}) is not null as there`.execute(db)
  return rows[0]?.there ?? false
}
