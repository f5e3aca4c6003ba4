import { type Kysely, sql } from 'kysely'

/** For 50,000 resources: relations that are as before are not compared, a page of the list sorts none of them, a search reads no row that does not match, a new name is found at once. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index resource_by_key on resource (((kind || ':' || id) collate "C"))`.execute(db)
  await sql`create index resource_by_text on resource using gin (id gin_trgm_ops, name gin_trgm_ops)`.execute(db)
  await sql`alter table registry_source add column relations_digest text`.execute(db)
  // Names that wait to be sorted into the index are read one by one at each look-up.
  await sql`alter index resource_by_name set (fastupdate = off)`.execute(db)
}
