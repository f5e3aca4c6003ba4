import type { AskDatabase } from './connect.ts'

/** What a login that reads may do beside that. It is taken, and said. */

const sql = (major: number): string => `
  select r.rolsuper as "it is a superuser", r.rolreplication as "it may copy the server", r.rolcreaterole as "it may make roles",
    r.rolcreatedb as "it may make databases", pg_has_role('pg_signal_backend', 'usage') as "it may end sessions",
    ${major >= 14 ? `pg_has_role('pg_write_all_data', 'usage')` : 'false'} or exists (
      select from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        and has_table_privilege(c.oid, 'insert, update, delete, truncate')) as "it may write to tables"
  from pg_roles r where r.rolname = current_user`

/** In a few words; empty where it may do nothing else. */
export async function sayTooMuch(ask: AskDatabase, major: number): Promise<string> {
  const [row = {}] = (await ask({ sql: sql(major) })).rows
  const found = Object.entries(row).flatMap(([words, value]) => (value === true ? [words] : []))
  // A superuser may do all of it.
  const said = row['it is a superuser'] === true ? found.slice(0, 1) : found
  return said.length === 0
    ? ''
    : `; the login may do more than read: ${said.join(', ')}. Use one with the rights that "nightshift sources rights" prints`
}
