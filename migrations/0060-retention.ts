import { type Kysely, sql } from 'kysely'

/**
 * Allows old data to be removed in only one way: by a function that runs as the owner and reads the
 * setting itself. It skips incidents that are open, waited for or held. The function leaves a
 * tombstone of each removed incident, which a row of the audit confirms. The services may remove no
 * data in any other way.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await keepTombstones(db)
  await keepHolds(db)
  await allowTheRoad(db)
  await judgeIncidents(db)
  await removeIncidents(db)
  await removePassing(db)
  await sweepBodies(db)
  await noteRounds(db)
}

async function keepTombstones(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table removal (
      id bigint generated always as identity primary key,
      tx xid8 not null unique default pg_current_xact_id(),
      at timestamptz not null default nightshift_now(),
      rule text not null,
      before timestamptz not null
    )`.execute(db)
  await sql`
    create table removed_incident (
      incident_id text primary key,
      removal_id bigint not null references removal (id),
      rows integer not null,
      head_hash text not null,
      closed_at timestamptz not null
    )`.execute(db)
  await sql`create index removed_incident_removal on removed_incident (removal_id)`.execute(db)
  for (const table of ['removal', 'removed_incident'])
    for (const [name, when, each] of [
      ['append_only', 'update or delete', 'row'],
      ['no_truncate', 'truncate', 'statement'],
    ])
      await sql
        .raw(
          `create trigger ${table}_${name} before ${when} on ${table} for each ${each} execute function refuse_change()`,
        )
        .execute(db)
  await sql`revoke all on removal, removed_incident from nightshift_app`.execute(db)
  await sql`grant select on removal, removed_incident to nightshift_app`.execute(db)
  // An incident still names its previous incident after the previous incident was removed. The name
  // then leads to the tombstone.
  await sql`alter table incident drop constraint if exists incident_previous_id_fkey`.execute(db)
  // Finds the rows that belong to an incident when it is removed. The database uses the indexes
  // too, to check whether rows still refer to the incident.
  await sql`create index decision_token_approval on decision_token (approval_id)`.execute(db)
  await sql`create index standing_grant_approval on standing_grant (approval_id)`.execute(db)
  await sql`create index proposal_incident on proposal (incident_id) where incident_id is not null`.execute(db)
  await sql`create index effect_incident on effect (incident_id) where incident_id is not null`.execute(db)
  await sql`create index incident_previous on incident (previous_id) where previous_id is not null`.execute(db)
}

/** Creates holds: a person decided that an incident is kept, whatever its age. */
async function keepHolds(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table incident_hold (
      id text primary key,
      incident_id text not null references incident (id),
      reason text not null check (length(reason) between 3 and 2000),
      held_by text not null references operator (id),
      held_at timestamptz not null default nightshift_now(),
      ended_at timestamptz,
      ended_by text references operator (id)
    )`.execute(db)
  await sql`create unique index incident_hold_one on incident_hold (incident_id) where ended_at is null`.execute(db)
  await sql`create index incident_hold_incident on incident_hold (incident_id)`.execute(db)
  await sql`
    create trigger incident_hold_change after insert or update or delete on incident_hold
    for each row execute function note_row_change('id', '', '{}')`.execute(db)
  await sql`
    create trigger incident_hold_ended before update on incident_hold
    for each row when (old.ended_at is not null) execute function refuse_change()`.execute(db)
  await sql`revoke all on incident_hold from nightshift_app`.execute(db)
  await sql`grant select, insert, update (ended_at, ended_by) on incident_hold to nightshift_app`.execute(db)
}

/**
 * Allows rows of a log, and changes that the database recorded about an incident, to be deleted
 * only in the transaction that writes the tombstone.
 */
async function allowTheRoad(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function refuse_without_tombstone() returns trigger language plpgsql as $$
    begin
      if not exists (
        select from removed_incident as gone join removal on removal.id = gone.removal_id
        where gone.incident_id = to_jsonb(old)->>tg_argv[0] and removal.tx = pg_current_xact_id())
      then
        raise exception '% is append-only: % is refused', tg_table_name, tg_op using errcode = 'insufficient_privilege';
      end if;
      return old;
    end $$`.execute(db)
  await sql`
    create function refuse_without_removal() returns trigger language plpgsql as $$
    begin
      if not exists (select from removal where tx = pg_current_xact_id())
        or old.of_table not in ('incident', 'alert', 'decision_token', 'postmortem_edit', 'incident_hold')
      then
        raise exception '% is append-only: % is refused', tg_table_name, tg_op using errcode = 'insufficient_privilege';
      end if;
      return old;
    end $$`.execute(db)
  for (const [table, refusal] of [
    ['incident_event', "refuse_without_tombstone('incident_id')"],
    ['postmortem_edit', "refuse_without_tombstone('incident_id')"],
    ['row_change', 'refuse_without_removal()'],
  ]) {
    await sql.raw(`drop trigger ${table}_append_only on ${table}`).execute(db)
    await sql
      .raw(
        `create trigger ${table}_append_only before update on ${table} for each row execute function refuse_change()`,
      )
      .execute(db)
    await sql
      .raw(`create trigger ${table}_removed before delete on ${table} for each row execute function ${refusal}`)
      .execute(db)
  }
  await sql`
    create trigger incident_removed before delete on incident
    for each row execute function refuse_without_tombstone('id')`.execute(db)
}

/**
 * Creates the function that returns why an incident is kept. `docs/reference/configuration.md`
 * lists the reasons. Null if nothing needs the incident.
 */
async function judgeIncidents(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function retention_days(name text, fallback integer) returns integer language sql stable as $$
      select case when stored.value is null then fallback
        when stored.value ~ '^[0-9]{2,4}$' and stored.value::integer between 31 and 3650 then stored.value::integer end
      from (select (select value from platform_config where key = name) as value) as stored
    $$`.execute(db)
  await sql`
    create function why_kept(it incident) returns text language sql stable as $$
      select case
        when it.status not in ('resolved', 'escalated', 'cancelled') or it.closed_at is null then 'open'
        when exists (select from incident_hold where incident_id = it.id and ended_at is null) then 'held'
        when it.review_wanted_at is not null or it.look_wanted is not null or it.watch_until > nightshift_now()
          or exists (select from alert where incident_id = it.id and status in ('firing', 'unknown'))
          or exists (select from approval where incident_id = it.id and status in ('pending', 'approved'))
          or exists (select from effect where incident_id = it.id and status in ('running', 'indeterminate'))
          or exists (select from device_call where incident_id = it.id and finished_at is null)
          or exists (select from target_lease where incident_id = it.id)
          or exists (select from delivery where incident_id = it.id and status in ('pending', 'sending')) then 'waited for'
        when exists (select from standing_grant as given join approval on approval.id = given.approval_id where approval.incident_id = it.id)
          or exists (select from incident_event where incident_id = it.id and kind = 'grant_used') then 'grant'
        when exists (
          select from incident as later where later.previous_id = it.id and (later.closed_at is null
            or later.status not in ('resolved', 'escalated', 'cancelled')
            or exists (select from incident_hold where incident_id = later.id and ended_at is null))) then 'followed'
        when it.group_id is not null and exists (
          select from incident as beside where beside.group_id = it.group_id and beside.status in ('open', 'investigating', 'awaiting_approval'))
          then 'followed'
        when exists (
          select from alert as own join alert as earlier
            on earlier.source = own.source and earlier.fingerprint = own.fingerprint and earlier.id < own.id
          where own.incident_id = it.id and earlier.incident_id <> it.id and earlier.end_received_at is null) then 'followed'
        when exists (
          select from incident as live
          where live.status in ('open', 'investigating', 'awaiting_approval') and live.type = it.type and live.created_at > it.closed_at
            and (select count(*) from (
              select from incident as newer
              where newer.type = it.type and newer.closed_at > it.closed_at and newer.closed_at <= live.created_at
                and newer.resource_kind is not distinct from it.resource_kind limit 10) as later_ones) < 10) then 'precedent'
      end
    $$`.execute(db)
}

/**
 * Creates the function that checks the next closed incidents and removes those that nothing needs.
 * The function locks each incident before it judges the incident, so that it sees rows that were
 * just added. The function writes the row of the audit last, so that the audit's chain is locked
 * only at the end of the transaction.
 */
async function removeIncidents(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function remove_closed_incidents(after_at timestamptz, after_id text, max_count integer)
    returns table (looked integer, removed integer, last_at timestamptz, last_id text)
    language plpgsql security definer set search_path = public, pg_temp set timezone = 'UTC' set datestyle = 'ISO' as $$
    declare
      days integer := retention_days('retention.incidents', null);
      until timestamptz := nightshift_now() - make_interval(days => days);
      seen text[];
      gone text[];
      number bigint;
      sealed text;
    begin
      looked := 0; removed := 0; last_at := after_at; last_id := after_id;
      if days is null then return next; return; end if;
      select array_agg(next.id order by next.closed_at, next.id) into seen from (
        select id, closed_at from incident
        where closed_at < until and (closed_at, id) > (after_at, after_id)
        order by closed_at, id limit least(max_count, 500)) as next;
      looked := coalesce(cardinality(seen), 0);
      if looked = 0 then return next; return; end if;
      select closed_at, id into last_at, last_id from incident where id = seen[looked];
      select array_agg(id) into gone from (
        select id from incident where id = any(seen) order by id for update skip locked) as locked;
      select array_agg(it.id) into gone from incident as it where it.id = any(gone) and it.closed_at < until and why_kept(it) is null;
      removed := coalesce(cardinality(gone), 0);
      if removed = 0 then return next; return; end if;

      insert into removal (rule, before) values (format('retention.incidents = %s days', days), until) returning id into number;
      insert into removed_incident (incident_id, removal_id, rows, head_hash, closed_at)
      select id, number, next_seq - 1, head_hash, closed_at from incident where id = any(gone);
      insert into body_candidate (digest)
      select named.digest from (
        select jsonb_array_elements_text(jsonb_path_query_array(metadata, '$.**.digest')) as digest from incident_event
        where incident_id = any(gone) and metadata @? '$.**.digest'
        union select digest from source_reading where incident_id = any(gone)
        union select jsonb_array_elements_text(jsonb_path_query_array(dry_run, '$.**.digest')) from approval
        where incident_id = any(gone)) as named
      join result_body on result_body.digest = named.digest
      on conflict do nothing;
      perform remove_what_belongs(gone);
      select encode(sha256(convert_to(coalesce(string_agg(
          format('%s %s %s %s', incident_id, rows, head_hash, to_char(closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')),
          ',' order by incident_id collate "C"), ''), 'UTF8')), 'hex')
        into sealed from removed_incident where removal_id = number;
      insert into audit (who, what, subject, detail) values ('retention', 'retention.removed', number::text,
        format('%s incidents that closed before %s, by retention.incidents = %s days: %s', removed,
          to_char(until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), days, sealed));
      return next;
    end $$`.execute(db)
  await sql`
    create function remove_what_belongs(gone text[]) returns void language plpgsql as $$
    declare
      asked text[] := array(select id from approval where incident_id = any(gone));
      alerts text[] := array(select id from alert where incident_id = any(gone));
      tokens text[] := array(select sha256 from decision_token where approval_id = any(asked));
      holds text[] := array(select id from incident_hold where incident_id = any(gone));
    begin
      delete from slack_card where approval_id = any(asked);
      delete from decision_token where approval_id = any(asked);
      delete from approval_decision where approval_id = any(asked);
      update approval set asked_with = null where asked_with = any(asked);
      delete from approval where id = any(asked);
      delete from delivery where incident_id = any(gone);
      delete from slack_thread where incident_id = any(gone);
      delete from device_call where incident_id = any(gone);
      delete from platform_effect where key in (select key from effect where incident_id = any(gone));
      delete from effect where incident_id = any(gone);
      delete from proposal where incident_id = any(gone);
      delete from postmortem_edit where incident_id = any(gone);
      delete from alert where id = any(alerts);
      delete from incident_hold where id = any(holds);
      delete from incident_event where incident_id = any(gone);
      delete from incident where id = any(gone);
      delete from row_change using (
        select 'incident' as of_table, unnest(gone) as row_key union all select 'postmortem_edit', unnest(gone)
        union all select 'alert', unnest(alerts) union all select 'decision_token', unnest(tokens)
        union all select 'incident_hold', unnest(holds)) as over
      where row_change.of_table = over.of_table and row_change.row_key = over.row_key;
    end $$`.execute(db)
  await sql`revoke all on function remove_closed_incidents(timestamptz, text, integer), remove_what_belongs(text[]) from public`.execute(
    db,
  )
  await sql`grant execute on function remove_closed_incidents(timestamptz, text, integer) to nightshift_app`.execute(db)
}

/**
 * Creates the function that removes rows to which no log refers: messages that are over, and alerts
 * that ended and never belonged to an incident.
 */
async function removePassing(db: Kysely<unknown>): Promise<void> {
  await sql`create index delivery_over on delivery (finished_at) where status in ('sent', 'failed', 'dropped')`.execute(
    db,
  )
  await sql`create index alert_alone on alert (last_seen_at) where incident_id is null and status = 'resolved'`.execute(
    db,
  )
  await sql`
    create function remove_passing(max_count integer) returns table (deliveries integer, alerts integer)
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
      days integer := retention_days('retention.deliveries', 90);
    begin
      deliveries := 0; alerts := 0;
      if days is not null then
        delete from delivery where id in (
          select over.id from delivery as over
          where over.status in ('sent', 'failed', 'dropped') and over.finished_at < nightshift_now() - make_interval(days => days)
            and not exists (select from delivery as going where going.message_id = over.message_id and going.status in ('pending', 'sending'))
          order by over.finished_at limit least(max_count, 5000) for update skip locked);
        get diagnostics deliveries = row_count;
      end if;
      days := retention_days('retention.alerts', null);
      if days is not null then
        with gone as (
          delete from alert where id in (
            select id from alert
            where incident_id is null and status = 'resolved' and last_seen_at < nightshift_now() - make_interval(days => days)
            order by last_seen_at limit least(max_count, 5000) for update skip locked) returning id)
        select count(*) into alerts from gone;
      end if;
      return next;
    end $$`.execute(db)
  await sql`revoke all on function remove_passing(integer) from public`.execute(db)
  await sql`grant execute on function remove_passing(integer) to nightshift_app`.execute(db)
}

/**
 * Creates the function that removes result bodies that no row names, a day after the last incident
 * that named them was removed. A transaction that stores a body first removes it from the list of
 * candidates, and waits for a sweep that has locked it. Therefore no row ever names a body that was
 * removed.
 */
async function sweepBodies(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table body_candidate (
      digest text primary key,
      since timestamptz not null default nightshift_now()
    )`.execute(db)
  await sql`
    create index incident_event_bodies on incident_event using gin (jsonb_path_query_array(metadata, '$.**.digest'))
    where metadata @? '$.**.digest'`.execute(db)
  await sql`create index source_reading_digest on source_reading (digest)`.execute(db)
  await sql`
    create function sweep_bodies(max_count integer) returns integer
    language plpgsql security definer set search_path = public, pg_temp as $$
    declare
      due text[];
      named text[];
      swept integer;
    begin
      select array_agg(digest) into due from (
        select digest from body_candidate where since < nightshift_now() - interval '1 day'
        limit least(max_count, 500) for update skip locked) as next;
      if due is null then return 0; end if;
      select array_agg(wanted.digest) into named from unnest(due) as wanted (digest) where exists (
          select from incident_event
          where metadata @? '$.**.digest' and jsonb_path_query_array(metadata, '$.**.digest') ? wanted.digest)
        or exists (select from source_reading where source_reading.digest = wanted.digest);
      select coalesce(named, '{}') || coalesce(array_agg(digest), '{}') into named from (
        select jsonb_array_elements_text(jsonb_path_query_array(dry_run, '$.**.digest')) as digest from approval
        where dry_run @? '$.**.digest') as shown where digest = any(due);
      delete from body_candidate where digest = any(due);
      delete from result_body where digest = any(due) and not digest = any(named);
      get diagnostics swept = row_count;
      return swept;
    end $$`.execute(db)
  await sql`revoke all on body_candidate from nightshift_app`.execute(db)
  await sql`grant select, delete on body_candidate to nightshift_app`.execute(db)
  await sql`revoke all on function sweep_bodies(integer) from public`.execute(db)
  await sql`grant execute on function sweep_bodies(integer) to nightshift_app`.execute(db)
}

/**
 * Records when the last round of removal was completed, so that it is visible if no process removes
 * old data.
 */
async function noteRounds(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table retention_round (
      singleton boolean primary key default true check (singleton),
      began_at timestamptz not null default nightshift_now(),
      ended_at timestamptz,
      removed jsonb not null default '{}'
    )`.execute(db)
  // Begins with the upgrade, so that a round that never begins is also late.
  await sql`insert into retention_round default values`.execute(db)
  await sql`grant select, insert, update on retention_round to nightshift_app`.execute(db)
}
