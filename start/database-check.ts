import { connect, type Db } from '../db/connect.ts'
import { databaseTrouble } from '../db/database-state.ts'
import { type LoginRights, readLoginRights } from '../db/login-rights.ts'
import { SessionRefusedError } from '../db/open-session.ts'
import { siteId } from '../db/site-id.ts'
import { migrateToLatest, migrationTrouble, newerSchema, pendingMigrations } from '../migrations/migrate.ts'

/**
 * The state of a database: `detail` if it is usable, otherwise the fault and what a person should
 * do.
 */
type DatabaseFinding =
  | { ok: true; detail: string; warning: string | null; missing: number; rights: LoginRights; site: string }
  | ({ ok: false } & Refusal)

/** Why a database is not usable. `isAbsent`: the login or the database may not exist yet. */
type Refusal = { what: string; remedy: string; isAbsent?: boolean }

/** The oldest PostgreSQL version that supports all SQL of this version. */
const oldest = { number: 150_000, name: '15' }

/**
 * Checks whether the services could work with this login: the server is reachable, new enough and
 * writable, the server keeps one session per connection, and the login may use the services' role.
 * Changes nothing.
 */
export async function checkServicesLogin(databaseUrl: string): Promise<DatabaseFinding> {
  const found = await checkLogin(databaseUrl, refuseServices)
  if (!found.ok) return found
  if (found.missing === 0) {
    const refused = await asServices(databaseUrl)
    if (refused) return refused
  }
  const { isOwner, login } = found.rights
  const warning = isOwner
    ? `${login} owns the database: give the services a login that does not own it (docs/how-to/production.md)`
    : null
  return { ...found, warning }
}

function refuseServices(rights: LoginRights): Refusal | null {
  // Accepts a missing role if the owner's login may create it, as the first migration does.
  const isMadeLater = !rights.hasServicesRole && rights.isOwner && rights.mayMakeRoles
  if (rights.isServices || rights.isSuperuser || isMadeLater) return null
  const make = rights.hasServicesRole ? '' : 'CREATE ROLE nightshift_app NOLOGIN; '
  return {
    what: `${rights.login} may not use the role nightshift_app, which the services need`,
    remedy: `As PostgreSQL's administrator: ${make}GRANT nightshift_app TO ${quoted(rights.login)};`,
  }
}

/** Checks whether this login may migrate the schema of the services' database. Changes nothing. */
export async function checkOwnerLogin(ownerUrl: string, databaseUrl: string): Promise<DatabaseFinding> {
  const services = decodeURIComponent(URL.parse(databaseUrl)?.pathname.slice(1) ?? '')
  return await checkLogin(ownerUrl, (rights) => refuseOwner(rights, services))
}

function refuseOwner({ login, database, owner, isOwner, ...rights }: LoginRights, services: string): Refusal | null {
  if (services !== database)
    return {
      what: `The owner's URL names the database ${database}, the services' URL names ${services}`,
      remedy: 'Name the same database in both URLs.',
    }
  if (!isOwner)
    return {
      what: `The database ${database} is owned by ${owner}, and ${login} may not change its schema`,
      remedy: `Name the login of ${owner}, or as PostgreSQL's administrator: ALTER DATABASE ${quoted(database)} OWNER TO ${quoted(login)};`,
    }
  if (rights.hasServicesRole || rights.mayMakeRoles) return null
  return {
    what: `${login} may not create the role nightshift_app, which the services need`,
    remedy: `As PostgreSQL's administrator: CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO ${quoted(login)};`,
  }
}

/**
 * Migrates the schema with this login. Returns the applied migrations. Throws an Error with the
 * fault and its remedy in one message.
 */
export async function bringSchemaUp(ownerUrl: string): Promise<string[]> {
  try {
    return (await migrateToLatest(ownerUrl)).applied
  } catch (error) {
    const { what, remedy } = explain(error, ownerUrl)
    throw new Error(`${what}. ${remedy}`)
  }
}

async function checkLogin(
  databaseUrl: string,
  refuse: (rights: LoginRights) => Refusal | null,
): Promise<DatabaseFinding> {
  if (!/^postgres(ql)?:\/\//.test(databaseUrl) || !URL.canParse(databaseUrl))
    return {
      ok: false,
      what: 'The given text is not a PostgreSQL URL',
      remedy: 'Write the URL as postgresql://login:password@host:5432/database.',
    }
  let db: Db | undefined
  try {
    db = connect(databaseUrl, { owner: true, max: 1, name: 'nightshift setup' })
    const rights = await readLoginRights(db)
    if (rights.versionNumber < oldest.number)
      return {
        ok: false,
        what: `The server runs PostgreSQL ${rights.version}, and Nightshift needs ${oldest.name} or later`,
        remedy: 'Upgrade the server, or name another server.',
      }
    const trouble = await databaseTrouble(db)
    if (trouble) return { ok: false, what: trouble.what.replace(/\.$/, ''), remedy: asSentence(trouble.remedy) }
    const [other] = rights.othersTables
    if (other !== undefined)
      return {
        ok: false,
        what: `The database ${rights.database} has tables of another program (${rights.othersTables.join(', ')})`,
        remedy: `Nightshift needs a database of its own: CREATE DATABASE nightshift OWNER ${quoted(rights.owner)};`,
      }
    const refused = refuse(rights)
    if (refused) return { ok: false, ...refused }
    const newer = await newerSchema(db)
    if (newer) return { ok: false, what: newer, remedy: 'Nothing was changed.' }
    const missing = await pendingMigrations(db)
    const schema = missing.length === 0 ? 'the schema is up to date' : `${missing.length} migrations to apply`
    const detail = `PostgreSQL ${rights.version}, database ${rights.database} as ${rights.login}; ${schema}`
    // Returns an empty site id for a new database, which has none yet.
    const site = (await siteId(db)) ?? ''
    return { ok: true, detail, warning: null, missing: missing.length, rights, site }
  } catch (error) {
    return { ok: false, ...explain(error, databaseUrl) }
  } finally {
    await db?.destroy().catch(() => undefined)
  }
}

async function asServices(databaseUrl: string): Promise<DatabaseFinding | null> {
  const db = connect(databaseUrl, { max: 1, name: 'nightshift setup' })
  try {
    await readLoginRights(db)
    return null
  } catch (error) {
    return { ok: false, ...explain(error, databaseUrl) }
  } finally {
    await db.destroy().catch(() => undefined)
  }
}

function explain(error: unknown, databaseUrl: string): Refusal {
  if (error instanceof SessionRefusedError) return { what: error.what, remedy: asSentence(error.remedy) }
  const known = migrationTrouble(error, databaseUrl)
  if (known) return { what: known.problem, remedy: known.remedy, isAbsent: known.isAbsent ?? false }
  const message = error instanceof Error ? error.message : String(error)
  if (/does not support SSL/i.test(message))
    return {
      what: 'The URL asks for TLS, and the PostgreSQL server does not offer it',
      remedy: 'Remove sslmode from the URL if nobody can listen on the network, or set ssl = on at the server.',
    }
  if (/no pg_hba.conf entry/.test(message))
    return {
      what: message,
      remedy:
        'Add this login and address to pg_hba.conf, or add ?sslmode=require to the URL if the server accepts only TLS.',
    }
  if (/timeout|terminated unexpectedly/i.test(message))
    return {
      what: `PostgreSQL does not answer: ${message}`,
      remedy: 'Correct host and port, and check the log of PostgreSQL.',
    }
  return { what: message, remedy: 'Correct the URL, and check the log of PostgreSQL.' }
}

const asSentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`
const quoted = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`)

/**
 * SQL for PostgreSQL's administrator if neither database nor logins exist. The administrator
 * chooses the passwords.
 */
export const administratorStatements = `CREATE ROLE nightshift LOGIN PASSWORD '…';
CREATE ROLE nightshift_app NOLOGIN;
GRANT nightshift_app TO nightshift;
CREATE ROLE nightshift_services LOGIN PASSWORD '…' IN ROLE nightshift_app;
CREATE DATABASE nightshift OWNER nightshift;`
