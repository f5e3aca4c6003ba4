import { type Kysely, sql } from 'kysely'

/**
 * Lets a search find an incident by a text that people paste from an alert: its name, its
 * fingerprint, the value of a label (an address also without its port), or a label with its value.
 * Each text is compared as a whole, ignoring case. Parts of words are searched in titles, resources
 * and types.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function alert_words(name text, fingerprint text, labels jsonb) returns text[] language sql immutable parallel safe
      set search_path = pg_catalog, pg_temp
      as $$ select array(
        select left(lower(word), 200) from (
          values (name), (fingerprint)
          union select said.word from jsonb_each_text(labels) as label (key, value),
            lateral (values (value), (key || '=' || value), (substring(value from '^(.+):[0-9]+$'))) as said (word)
        ) as words (word) where word <> '') $$`.execute(db)
  await sql`create index alert_by_words on alert using gin (alert_words(name, fingerprint, labels))`.execute(db)
  // Forces the use of the index. Without it, the planner reads the whole table and computes the
  // words of each row, which takes seconds; the index takes a hundredth of this time.
  await sql`
    create function alerts_with_words(wanted text[]) returns table (id text, incident_id text) language sql stable
      set enable_seqscan = off set enable_indexscan = off set search_path = pg_catalog, public, pg_temp
      as $$ select id, incident_id from alert where alert_words(name, fingerprint, labels) @> wanted $$`.execute(db)
  await sql`create index incident_type_words on incident using gin (type gin_trgm_ops)`.execute(db)
}
