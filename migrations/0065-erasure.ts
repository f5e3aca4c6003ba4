import { type Kysely, sql } from 'kysely'

/**
 * Allows a person's data to be erased on request. A pseudonym replaces the name, and the words that
 * the person wrote are removed. Only one function erases data, as the owner, and only in the
 * columns that this migration lists. A row that was hashed keeps its hash. Its tombstone has the
 * digest of the present content, and a row of the audit has the digest of all tombstones.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await keepErasures(db)
  await listColumns(db)
  await replaceWords(db)
  await findWords(db)
  await erasePerson(db)
}

async function keepErasures(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table erasure (
      id bigint generated always as identity primary key,
      tx xid8 not null unique default pg_current_xact_id(),
      at timestamptz not null default nightshift_now(),
      operator_id text not null references operator (id),
      pseudonym text not null
    )`.execute(db)
  await sql`
    create table erased_row (
      erasure_id bigint not null references erasure (id),
      of_table text not null check (of_table in ('incident_event', 'audit')),
      row_id bigint not null,
      hash text not null,
      digest text not null,
      primary key (of_table, row_id, erasure_id)
    )`.execute(db)
  await sql`create index erased_row_erasure on erased_row (erasure_id)`.execute(db)
  for (const table of ['erasure', 'erased_row'])
    for (const [name, when, each] of [
      ['append_only', 'update or delete', 'row'],
      ['no_truncate', 'truncate', 'statement'],
    ])
      await sql
        .raw(
          `create trigger ${table}_${name} before ${when} on ${table} for each ${each} execute function refuse_change()`,
        )
        .execute(db)
  await sql`revoke all on erasure, erased_row from nightshift_app`.execute(db)
  await sql`grant select on erasure, erased_row to nightshift_app`.execute(db)
  // Replaces ids by the pseudonym too, so that the rows of the audit about the person still match.
  await sql`
    do $$
    declare
      rule record;
    begin
      for rule in select conname, pg_get_expr(conbin, conrelid) as words, attname from pg_constraint
        join pg_attribute on attrelid = conrelid and attnum = conkey[1]
        where conrelid = 'operator'::regclass and contype = 'c' and attname in ('slack_user_id', 'pagerduty_user_id')
      loop
        execute format('alter table operator drop constraint %I, add constraint %I check ((%s) or %I ~ ''^erased-'')',
          rule.conname, rule.conname, rule.words, rule.attname);
      end loop;
    end $$`.execute(db)
  // Returns the digest of all content of a row in a chain, including its hash. For an erased row
  // this digest is checked instead of the hash.
  await sql`
    create function erased_digest(stored jsonb) returns text language sql immutable as $$
      select encode(sha256(convert_to((stored - 'tx')::text, 'UTF8')), 'hex')
    $$`.execute(db)
}

/**
 * The columns that can name a person. `own`: only the rows that match this condition; `$1` is the
 * person's id.
 */
const columns: [table: string, column: string, own?: string][] = [
  ['operator', 'name', 'id = $1'],
  ['operator', 'subject', 'id = $1'],
  ['operator', 'slack_user_id', 'id = $1'],
  ['operator', 'pagerduty_user_id', 'id = $1'],
  ['api_token', 'name', 'operator_id = $1'],
  ['audit', 'who'],
  ['audit', 'subject', `split_part(what, '.', 1) in ('operator', 'sign_in', 'security', 'push')`],
  ['audit', 'detail'],
  ['incident_event', 'actor'],
  ['incident_event', 'detail'],
  ['incident_event', 'metadata'],
  ['incident', 'title'],
  ['incident', 'resolution'],
  ['incident', 'kept_reason'],
  ['incident_hold', 'reason'],
  ['approval', 'reason'],
  ['approval', 'edited_by'],
  ['approval_decision', 'reason'],
  ['expectation', 'reason'],
  ['platform_config', 'updated_by'],
  ['platform_config', 'reason'],
  ['platform_config_revision', 'actor'],
  ['platform_config_revision', 'reason'],
  ['postmortem_edit', 'sections'],
  ['source', 'created_by'],
  ['inventory_import', 'who'],
  ['sns_topic', 'confirmed_by'],
  ['model_passport', 'measured_by'],
  ['device_enrolment', 'created_by'],
  ['destination', 'created_by'],
  ['change', 'author'],
  ['change', 'title'],
  ['delivery', 'notification'],
  [
    'row_change',
    'kept',
    `of_table in ('operator', 'api_token', 'platform_config', 'expectation', 'source', 'incident_hold', 'device_enrolment', 'postmortem_edit', 'incident')`,
  ],
]

async function listColumns(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table personal_column (
      of_table text not null,
      of_column text not null,
      own text not null default 'true',
      primary key (of_table, of_column)
    )`.execute(db)
  for (const [table, column, own = 'true'] of columns)
    await sql`insert into personal_column (of_table, of_column, own) values (${table}, ${column}, ${own})`.execute(db)
  await sql`revoke all on personal_column from nightshift_app`.execute(db)
  await sql`grant select on personal_column to nightshift_app`.execute(db)
}

/**
 * Keys whose values stay as they were approved: digests bind the executed call and its targets to
 * the approval. The name of a resource may also be the name of a person.
 */
const keptKeys = [
  ...['args', 'arguments', 'targets', 'target', 'resource', 'labels', 'dryRun', 'dry_run', 'identity', 'tool'],
  ...['type', 'source', 'id', 'kind', 'role', 'status', 'key', 'value', 'credential', 'url', 'headers', 'options'],
]

async function replaceWords(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function without_words(said text, pattern text, pseudonym text, texts text[]) returns text
    language plpgsql immutable as $$
    declare
      each text;
    begin
      if said is null then return null; end if;
      foreach each in array texts loop said := replace(said, each, '[erased]'); end loop;
      return regexp_replace(said, pattern, pseudonym, 'gi');
    end $$`.execute(db)
  await sql
    .raw(`
    create function without_words(said jsonb, pattern text, pseudonym text, texts text[]) returns jsonb
    language sql immutable as $$
      select case jsonb_typeof(said)
        when 'string' then to_jsonb(without_words(said #>> '{}', pattern, pseudonym, texts))
        when 'array' then (
          select coalesce(jsonb_agg(without_words(value, pattern, pseudonym, texts) order by place), '[]')
          from jsonb_array_elements(said) with ordinality as each (value, place))
        when 'object' then (
          select coalesce(jsonb_object_agg(key,
            case when key = any('{${keptKeys.join()}}') then value else without_words(value, pattern, pseudonym, texts) end), '{}')
          from jsonb_each(said))
        else said end
    $$`)
    .execute(db)
}

/**
 * Creates functions that return the names of a person as one pattern, and the words that the person
 * wrote, the longest first. Short words are left out, because many people use them.
 */
async function findWords(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function names_of_person(person operator) returns text language sql stable as $$
      select '(?<![[:alnum:]_])(?:' || string_agg(regexp_replace(name, '[^[:alnum:]_]', '\\\\\\&', 'g'), '|' order by length(name) desc)
        || ')(?![[:alnum:]_])'
      from unnest(array[person.name, person.slack_user_id, person.pagerduty_user_id,
        case when length(person.subject) > 7 then person.subject end]) as name where name is not null
    $$`.execute(db)
  await sql`
    create function words_of_person(person operator) returns text[] language sql stable as $$
      select coalesce(array_agg(words order by length(words) desc), '{}') from (
        select reason as words from approval_decision where operator_id = person.id
        union select reason from incident_hold where held_by = person.id
        union select reason from expectation where created_by = person.id
        union select reason from platform_config_revision where actor in (person.name, 'user:' || person.name)
        union select part #>> '{}' from postmortem_edit, jsonb_path_query(sections, '$.**') as part
          where operator_id = person.id and jsonb_typeof(part) = 'string'
        union select part #>> '{}' from incident_event,
            unnest(array['$.**.reason', '$.**.text', '$.**.note', '$.**.comment', '$.**.resolution']::jsonpath[]) as place,
            jsonb_path_query(metadata, place) as part
          where actor = 'user:' || person.name and jsonb_typeof(part) = 'string'
        union select substring(detail from '^[^:]*: (.*)$') from audit
          where who = person.name and what in ('incident.held', 'incident.hold_ended', 'operator.added', 'operator.changed')
        union select detail from incident_event
          where actor = 'user:' || person.name and kind in ('resolved', 'escalated', 'cancelled')) as theirs
      where length(words) > 7 and words ~ '\\s'
    $$`.execute(db)
}

async function erasePerson(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function why_not_erased(person operator) returns text language sql stable as $$
      select case
        when exists (select from erasure where operator_id = person.id) then 'erased'
        when person.name in ('viewer', 'operator', 'approver', 'admin', 'agent', 'ingest') then 'no person'
        when person.role = 'admin' and person.disabled_at is null and not exists (
          select from operator as other where other.id <> person.id and other.role = 'admin' and other.disabled_at is null) then 'last admin'
        when exists (
          select from incident_event as said join incident on incident.id = said.incident_id
          where said.actor = 'user:' || person.name and exists (
            select from incident_hold where incident_id = incident.id and ended_at is null)) then 'held'
        when exists (
          select from incident where status in ('open', 'investigating', 'awaiting_approval') and (owner_id = person.id
            or requested_by = person.id
            or exists (select from incident_event as said where said.incident_id = incident.id and said.actor = 'user:' || person.name)
            or exists (select from approval join approval_decision as vote on vote.approval_id = approval.id
              where approval.incident_id = incident.id and vote.operator_id = person.id))) then 'open'
      end
    $$`.execute(db)
  await sql`
    create function count_personal(person_id text) returns table (of_table text, rows bigint)
    language plpgsql stable security definer set search_path = public, pg_temp as $$
    declare
      person operator;
      pattern text;
      texts text[];
      matching text;
    begin
      select * into person from operator where id = person_id;
      if person.id is null then return; end if;
      pattern := names_of_person(person);
      texts := words_of_person(person);
      for of_table, matching in
        select listed.of_table, string_agg(format('((%s) and %I is distinct from without_words(%I, $2, $3, $4))',
          listed.own, listed.of_column, listed.of_column), ' or ')
        from personal_column as listed group by 1 order by 1
      loop
        execute format('select count(*) from %I where %s', of_table, matching) into rows using person_id, pattern, 'x', texts;
        if rows > 0 then return next; end if;
      end loop;
    end $$`.execute(db)
  await sql`
    create function erase_person(person_id text, pseudonym text, asked_by text) returns text
    language plpgsql security definer set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO' set lock_timeout = '10s' as $$
    declare
      person operator;
      pattern text;
      texts text[];
      number bigint;
      listed record;
      sealed text;
      tombstones integer;
      why text;
    begin
      select * into person from operator where id = person_id for update;
      if person.id is null or pseudonym !~ '^erased-[0-9a-z]{8,40}$' then return 'unknown'; end if;
      why := why_not_erased(person);
      if why is not null then return why; end if;
      pattern := names_of_person(person);
      texts := words_of_person(person);
      insert into erasure (operator_id, pseudonym) values (person_id, pseudonym) returning id into number;
      for listed in select distinct of_table from personal_column order by 1 loop
        execute format('alter table %I disable trigger user', listed.of_table);
      end loop;
      for listed in
        select columns.of_table,
          string_agg(format('%I = case when %s then without_words(%I, $2, $3, $4) else %I end', of_column, own, of_column, of_column), ', ') as changes,
          string_agg(format('((%s) and %I is distinct from without_words(%I, $2, $3, $4))', own, of_column, of_column), ' or ') as matching
        from personal_column as columns group by 1 order by 1
      loop
        if listed.of_table in ('incident_event', 'audit') then
          execute format('with gone as (update %I as stored set %s where %s returning stored.*)
            insert into erased_row (erasure_id, of_table, row_id, hash, digest)
            select $5, $6, id, hash, erased_digest(to_jsonb(gone)) from gone',
            listed.of_table,
            listed.changes || case listed.of_table when 'audit' then ', address = case when who = $7 then null else address end' else '' end,
            listed.matching)
            using person_id, pattern, pseudonym, texts, number, listed.of_table, person.name;
        else
          execute format('update %I set %s where %s', listed.of_table, listed.changes, listed.matching) using person_id, pattern, pseudonym, texts;
        end if;
      end loop;
      delete from push_subscription where operator_id = person_id;
      delete from idempotency where token_id in (select id from api_token where operator_id = person_id);
      for listed in select distinct of_table from personal_column order by 1 loop
        execute format('alter table %I enable trigger user', listed.of_table);
      end loop;
      select count(*), encode(sha256(convert_to(coalesce(string_agg(
          format('%s %s %s %s', of_table, row_id, hash, digest), ',' order by of_table collate "C", row_id), ''), 'UTF8')), 'hex')
        into tombstones, sealed from erased_row where erasure_id = number;
      insert into audit (who, what, subject, detail) values (asked_by, 'retention.erased', number::text,
        format('%s became %s in %s rows of chains: %s', person_id, pseudonym, tombstones, sealed));
      return 'done';
    end $$`.execute(db)
  await sql`
    revoke all on function erase_person(text, text, text), count_personal(text) from public`.execute(db)
  await sql`grant execute on function erase_person(text, text, text), count_personal(text) to nightshift_app`.execute(
    db,
  )
}
