import { type Kysely, sql } from 'kysely'

/**
 * Creates the role that the services use. It has only INSERT and SELECT on the log, so that no bug
 * and no injected statement of a service can change what was recorded. By default the migrations
 * and `nightshift_app` use the same login, because the services run `SET ROLE` after connecting.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // If the login may not create roles, the server's administrator must have created the role and
  // made the login a member.
  await sql`
    do $$ begin
      if not exists (select from pg_roles where rolname = 'nightshift_app') then
        create role nightshift_app nologin;
      end if;
    exception when duplicate_object or unique_violation then null; -- roles are shared by all databases of a server
    end $$`.execute(db)
  await sql`
    do $$ begin
      grant nightshift_app to current_user;
    exception when insufficient_privilege then
      if not pg_has_role(current_user, 'nightshift_app', 'member') then raise; end if;
    end $$`.execute(db)
  await sql`grant usage on schema public to nightshift_app`.execute(db)
  await sql`grant select, insert, update on all tables in schema public to nightshift_app`.execute(db)
  await sql`grant usage on all sequences in schema public to nightshift_app`.execute(db)
  await sql`revoke update on incident_event, result_body, platform_config_revision from nightshift_app`.execute(db)
  await sql`grant delete on platform_config, target_lease, idempotency, region, shard, node, tenant, host, vm, link
    to nightshift_app`.execute(db)
}
