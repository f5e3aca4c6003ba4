import { type Kysely, sql } from 'kysely'

/**
 * Records how far each tool may go without approval in incidents of each type. Every change is a
 * row, and the newest row of a pair applies. Writes that an older version ran without approval
 * continue to run without approval, until a person confirms or revokes this.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table trust_change (
      id bigint generated always as identity primary key,
      tx xid8 not null default pg_current_xact_id(),
      at timestamptz not null default nightshift_now(),
      incident_type text not null,
      tool text not null,
      level text not null check (level in ('shadow', 'propose', 'act')),
      cause text not null check (cause in ('person', 'lost', 'upgrade')),
      set_by text references operator (id),
      incident_id text,
      check ((cause = 'person') = (set_by is not null)),
      check ((cause = 'lost') = (incident_id is not null)),
      check (cause <> 'lost' or level <> 'act')
    )`.execute(db)
  await sql`create index trust_change_pair on trust_change (incident_type, tool, id desc)`.execute(db)
  await sql`
    insert into trust_change (incident_type, tool, level, cause)
    select distinct incident.type, event.metadata->>'tool', 'act', 'upgrade'
    from incident_event as event join incident on incident.id = event.incident_id
    where event.kind = 'call_judged' and event.metadata->>'verdict' = 'run' and event.metadata->>'code' = 'REVERSIBLE_NEAR'
      and incident.type <> 'manual_change'
    order by 1, 2`.execute(db)
  for (const [name, when, each] of [
    ['append_only', 'update or delete', 'row'],
    ['no_truncate', 'truncate', 'statement'],
  ])
    await sql
      .raw(
        `create trigger trust_change_${name} before ${when} on trust_change for each ${each} execute function refuse_change()`,
      )
      .execute(db)
  await sql`
    create trigger trust_change_change after insert or update or delete on trust_change
    for each row execute function note_row_change('id', '', '{}')`.execute(db)
  await sql`
    insert into row_change (role, of_table, row_key, op, kept)
    select 'migration', 'trust_change', id, 'kept', kept_form(to_jsonb(stored), null, '{}') from trust_change as stored`.execute(
    db,
  )
  await sql`revoke all on trust_change from nightshift_app`.execute(db)
  await sql`grant select on trust_change to nightshift_app`.execute(db)
  // The database itself sets the row's number, time and transaction.
  await sql`
    grant insert (incident_type, tool, level, cause, set_by, incident_id) on trust_change to nightshift_app`.execute(db)
  await sql`
    create index incident_event_judged_write on incident_event (incident_id)
    where kind = 'call_judged' and metadata->>'effect' = 'write'`.execute(db)
  await sql`create index incident_event_graded on incident_event (incident_id) where kind = 'graded'`.execute(db)
}
