import { type Kysely, sql } from 'kysely'

/**
 * Leaves the names of other people unchanged when a person is erased: `anna-b` and `Anna` are not
 * `anna`. Also keeps a word before a colon that is not a name, such as `user:`.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function as_pattern(words text) returns text language sql immutable as $$
      select regexp_replace(words, '[^[:alnum:]_]', '\\\\\\&', 'g')
    $$`.execute(db)
  await sql`
    create or replace function names_of_person(person operator) returns text language sql stable as $$
      with own (name) as (
        select name from unnest(array[person.name, person.slack_user_id, person.pagerduty_user_id,
          case when length(person.subject) > 7 then person.subject end]) as name where name is not null
      ), around (name, before, after) as (
        select own.name, left(other.name, at - 1), substr(other.name, at + length(own.name))
        from own, operator as other, generate_series(1, length(other.name)) as at
        where other.id <> person.id and length(other.name) > length(own.name)
          and lower(substr(other.name, at, length(own.name))) = lower(own.name)
      ), guarded (name, words) as (
        select own.name, coalesce((
            select string_agg(concat('(?:', '(?<!' || as_pattern(nullif(before, '')) || ')',
              case when before <> '' and after <> '' then '|' end,
              '(?!' || as_pattern(around.name || nullif(after, '')) || '(?![[:alnum:]_]))', ')'), '')
            from around where around.name = own.name), '') || as_pattern(own.name)
        from own
      )
      select case when exists (select from operator as other where other.id <> person.id and lower(other.name) = lower(person.name))
          then '(?c)' else '' end || '(?<![[:alnum:]_])(?:' || string_agg(words, '|' order by length(name) desc) || ')(?![[:alnum:]_]|:[[:alnum:]])'
      from guarded
    $$`.execute(db)
}
