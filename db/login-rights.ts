import { sql } from 'kysely'
import type { Db } from './connect.ts'

/** The rights of a login in its database, which are read before any other query. */
export type LoginRights = {
  versionNumber: number
  version: string
  login: string
  database: string
  owner: string
  /** Whether the login owns the database, directly or as a member of the owner. */
  isOwner: boolean
  isSuperuser: boolean
  /** Whether the login may create roles. */
  mayMakeRoles: boolean
  /** Whether the role of the services exists and the login may use it. */
  hasServicesRole: boolean
  isServices: boolean
  /**
   * Tables of other programs in a database without Nightshift's migrations, at most three. Tables
   * of extensions are left out.
   */
  othersTables: string[]
}

/** Reads the rights of the connected login without changing its role. */
export async function readLoginRights(db: Db): Promise<LoginRights> {
  const { rows } = await sql<LoginRights>`
    select current_setting('server_version_num')::int as version_number, current_setting('server_version') as version,
      current_user::text as login, d.datname::text as database, pg_get_userbyid(d.datdba)::text as owner,
      pg_has_role(current_user, d.datdba, 'usage') as is_owner, me.rolsuper as is_superuser,
      me.rolsuper or me.rolcreaterole as may_make_roles, app.oid is not null as has_services_role,
      coalesce(pg_has_role(current_user, app.oid, 'member'), false) as is_services,
      array(select c.relname::text from pg_class c
        where c.relnamespace = to_regnamespace('public') and c.relkind in ('r', 'p') and to_regclass('kysely_migration') is null
          and not exists (select from pg_depend where objid = c.oid and deptype = 'e') order by c.relname limit 3) as others_tables
    from pg_database d
      join pg_roles me on me.rolname = current_user
      left join pg_roles app on app.rolname = 'nightshift_app'
    where d.datname = current_database()`.execute(db)
  return rows[0]!
}
