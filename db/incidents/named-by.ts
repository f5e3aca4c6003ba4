import { type RawBuilder, sql } from 'kysely'
import { alertWordsIn, typeWordsIn } from '../../domain/search-words.ts'
import { type Db, escapeLike, type Trx } from '../connect.ts'

/**
 * Maximum number of matches that indexes find first and that are then sorted. An incident that
 * matches twice counts twice.
 */
const maxFew = 2_000

/**
 * Finds incidents by a text: a part of title, resource or type, or the name, fingerprint or a label
 * of an alert. First uses indexes to look for few matches: for a rare text, the planner expects
 * many matches and would read all incidents in order. For a common text, reading in order soon
 * finds the newest incidents.
 */
export async function namedBy(db: Db, text: string): Promise<RawBuilder<boolean>> {
  const few = await db.transaction().execute(async (trx) => {
    await byIndexes(trx)
    const { rows } = await sql<{ id: string }>`${fewNamedBy(text)}`.execute(trx)
    return rows.map(({ id }) => id)
  })
  if (few.length <= maxFew) return sql<boolean>`incident.id = any(${few}::text[])`
  return sql<boolean>`(${sql.join(placesOf(text), sql` or `)} or incident.id in (select incident_id from ${withAlertWords(text)}))`
}

/** Keeps the planner from reading whole tables until the transaction ends. */
export async function byIndexes(trx: Trx): Promise<void> {
  await sql`
    select set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true),
      set_config('enable_indexonlyscan', 'off', true)`.execute(trx)
}

/**
 * Finds incidents by a text, in no order. Returns at most `maxFew` incidents and one more, which
 * shows that there are too many. Queries each column separately: for several columns in one
 * condition, the planner would read every incident with a resource.
 */
export function fewNamedBy(text: string): RawBuilder<unknown> {
  return sql`
    ${sql.join(
      placesOf(text).map((place) => sql`(select id from incident where ${place} limit ${maxFew + 1})`),
      sql` union all `,
    )}
    union all (select incident_id from ${withAlertWords(text)} where incident_id is not null limit ${maxFew + 1})
    limit ${maxFew + 1}`
}

/**
 * Returns SQL patterns that find a text anywhere in a value. A text of one or two letters, for
 * which the index cannot be used, must begin a word.
 */
function patternsOf(text: string, separators: readonly string[]): string[] {
  const literal = escapeLike(text)
  if (text.length >= 3) return [`%${literal}%`]
  return [`${literal}%`, ...separators.map((each) => `%${escapeLike(each)}${literal}%`)]
}

function placesOf(text: string): RawBuilder<unknown>[] {
  return [
    ...patternsOf(text, [' ', '-']).flatMap((one) => [
      sql`incident.title ilike ${one}`,
      sql`incident.resource_id ilike ${one}`,
    ]),
    ...typeWordsIn(text).flatMap((word) => patternsOf(word, ['_']).map((one) => sql`incident.type ilike ${one}`)),
  ]
}

/**
 * Selects alerts that contain the words of a text, with their incidents. Uses only the index of
 * migration 0050, which ignores case.
 */
export function withAlertWords(text: string): RawBuilder<unknown> {
  const ways = alertWordsIn(text).map(
    (words) =>
      sql`select id, incident_id from alerts_with_words(array(select left(lower(word), 200) from unnest(${words}::text[]) as said (word)))`,
  )
  return sql`(${sql.join(ways, sql` union `)}) as named`
}
