import { type Kysely, sql } from 'kysely'

/**
 * What the services run as. The log is INSERT and SELECT for them: no bug and no injected statement of a service can rewrite
 * what happened. Migrations and `nightshift_app` share a login by default (the services `SET ROLE` on connecting).
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$ begin
      create role nightshift_app nologin;
    exception when duplicate_object or unique_violation then null; -- roles are shared by all databases of a server
    end $$`.execute(db)
  await sql`grant nightshift_app to current_user`.execute(db)
  await sql`grant usage on schema public to nightshift_app`.execute(db)
  await sql`grant select, insert, update on all tables in schema public to nightshift_app`.execute(db)
  await sql`grant usage on all sequences in schema public to nightshift_app`.execute(db)
  await sql`revoke update on incident_event, result_body, platform_config_revision from nightshift_app`.execute(db)
  await sql`grant delete on platform_config, target_lease, idempotency, region, shard, node, tenant, host, vm, link
    to nightshift_app`.execute(db)
}
