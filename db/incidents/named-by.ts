import { type RawBuilder, sql } from 'kysely'
import { alertWordsIn, typeWordsIn } from '../../domain/search-words.ts'
import { type Db, escapeLike, type Trx } from '../connect.ts'

/**
 * Matches up to this many are found by indexes first and sorted then. An incident that matches
 * twice counts twice.
 */
const maxFew = 2_000

/**
 * Incidents that a text names: by a part of title, resource or type, or by an alert's name,
 * fingerprint or label. A few are asked for first, by indexes alone: for a rare text the planner
 * expects much and would read all in order. Of a common text the newest come soon that way.
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

/** Until the transaction ends the planner reads no table through. */
export async function byIndexes(trx: Trx): Promise<void> {
  await sql`
    select set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'off', true),
      set_config('enable_indexonlyscan', 'off', true)`.execute(trx)
}

/**
 * Incidents of a text, in no order, and one more than "few" where there are more. Asks each place
 * by itself: for several at once the planner takes an index of all that have a resource.
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

/** Anywhere in a text; one or two letters, which the index lacks, at a word's beginning. */
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
 * Alerts with these words, with their incidents: by migration 0050's index alone. The store folds
 * the case, as for its content.
 */
export function withAlertWords(text: string): RawBuilder<unknown> {
  const ways = alertWordsIn(text).map(
    (words) =>
      sql`select id, incident_id from alerts_with_words(array(select left(lower(word), 200) from unnest(${words}::text[]) as said (word)))`,
  )
  return sql`(${sql.join(ways, sql` union `)}) as named`
}
