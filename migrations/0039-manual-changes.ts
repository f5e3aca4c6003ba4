import { type Kysely, sql } from 'kysely'

/**
 * Adds writes that people make directly. A write of low risk takes the leases of its targets under
 * its own key, because it belongs to no incident. A write that an admin did alone waits for a
 * review.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table target_lease
      alter column incident_id drop not null,
      add column effect_key text,
      add check ((incident_id is null) = (effect_key is not null))`.execute(db)
  await sql`alter table incident add column review_wanted_at timestamptz`.execute(db)
  await sql`create index audit_acted on audit (id desc) where what = 'platform.acted'`.execute(db)
  await sql`
    create index incident_event_change on incident_event using gin ((metadata->'targets') jsonb_path_ops)
    where kind = 'change_requested'`.execute(db)
  await sql`
    create index incident_review_wanted on incident (review_wanted_at) where review_wanted_at is not null`.execute(db)
}
