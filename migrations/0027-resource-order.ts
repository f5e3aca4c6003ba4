import { type Kysely, sql } from 'kysely'

/**
 * Makes 50,000 resources fast: unchanged relations are not compared, a page of the list needs no
 * sorting, a search reads only rows that match, and a new name is found at once.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index resource_by_key on resource (((kind || ':' || id) collate "C"))`.execute(db)
  await sql`create index resource_by_text on resource using gin (id gin_trgm_ops, name gin_trgm_ops)`.execute(db)
  await sql`alter table registry_source add column relations_digest text`.execute(db)
  // Turns `fastupdate` off, because names that wait to be sorted into the index would be read one
  // by one at each search.
  await sql`alter index resource_by_name set (fastupdate = off)`.execute(db)
}
