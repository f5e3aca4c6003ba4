import type { AskDatabase } from './connect.ts'

/**
 * Rights of a login beyond reading. If the login has any of them, no statement of a model is sent.
 * The page Health shows these rights.
 */

const powers = `'pg_write_all_data', 'pg_write_server_files', 'pg_read_server_files', 'pg_execute_server_program', 'pg_signal_backend', 'pg_checkpoint',
    'pg_create_subscription', 'pg_maintain', 'pg_database_owner'`

const rightsSql = `
  select me.rolsuper, me.rolreplication, me.rolcreaterole, me.rolcreatedb, me.rolbypassrls,
    (select string_agg(r.rolname, ', ' order by r.rolname) from pg_roles r
      where r.rolname in (${powers}) and pg_has_role(current_user, r.oid, 'member')) as member_of,
    (select string_agg(r.rolname, ', ') from pg_roles r where r.rolsuper and r.rolname <> current_user and pg_has_role(current_user, r.oid, 'member')) as member_of_superuser,
    (select quote_ident(n.nspname) || '.' || quote_ident(c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and pg_has_role(current_user, c.relowner, 'usage')
      limit 1) as owns,
    (select quote_ident(n.nspname) || '.' || quote_ident(c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        and (has_table_privilege(c.oid, 'insert, update, delete, truncate, trigger') or has_any_column_privilege(c.oid, 'insert, update'))
      limit 1) as writes,
    has_database_privilege(current_database(), 'create') as creates
  from pg_roles me where me.rolname = current_user`

/** Lists the login's rights beyond reading in words, each with its object. */
export async function findExcessRights(ask: AskDatabase): Promise<string[]> {
  const { rows } = await ask({ sql: rightsSql })
  const [row = {}] = rows
  return [
    row.rolsuper === true && 'the login is a superuser',
    row.rolreplication === true && 'the login has REPLICATION, which reads every row of the server',
    row.rolcreaterole === true && 'the login may create roles',
    row.rolcreatedb === true && 'the login may create databases',
    row.rolbypassrls === true && 'the login bypasses row security',
    row.member_of !== null && `the login is a member of ${row.member_of}`,
    row.member_of_superuser !== null && `the login may become ${row.member_of_superuser}, a superuser`,
    row.owns !== null && `the login owns ${row.owns}`,
    row.writes !== null && `the login may write to ${row.writes}`,
    row.creates === true && 'the login may create schemas in the database',
  ].filter((each) => typeof each === 'string')
}

/** Writes one sentence about rights beyond reading, for Health and for a refusal. */
export const sayExcess = (found: readonly string[]): string =>
  `this login may write (${found.slice(0, 3).join('; ')}): use the grants of "nightshift sources rights postgresql"`
