import { Kysely, PostgresDialect, sql } from 'kysely'
import { type Migration, type MigrationProvider, type MigrationResultSet, Migrator } from 'kysely/migration'
import pg from 'pg'
import { version } from '../domain/version.ts'
import * as log from './0001-log.ts'
import * as authority from './0002-authority.ts'
import * as configuration from './0003-configuration.ts'
import * as inventory from './0004-inventory.ts'
import * as roles from './0005-roles.ts'
import * as sessions from './0006-sessions.ts'
import * as decisions from './0007-decisions.ts'
import * as operators from './0008-operators.ts'
import * as audit from './0009-audit.ts'
import * as attempts from './0010-attempts.ts'
import * as oidc from './0011-oidc.ts'
import * as grants from './0012-grants.ts'
import * as slack from './0013-slack.ts'
import * as size from './0014-size.ts'
import * as placement from './0015-placement.ts'
import * as platformEffect from './0016-platform-effect.ts'
import * as devices from './0017-devices.ts'
import * as lifecycle from './0018-lifecycle.ts'
import * as auditChain from './0019-audit-chain.ts'
import * as decisionTokens from './0020-decision-tokens.ts'
import * as modelServers from './0021-model-servers.ts'
import * as heartbeats from './0022-heartbeats.ts'
import * as patience from './0023-patience.ts'
import * as registry from './0024-registry.ts'
import * as sources from './0025-sources.ts'
import * as changes from './0026-changes.ts'
import * as resourceOrder from './0027-resource-order.ts'
import * as vmRepairs from './0028-vm-repairs.ts'
import * as passport from './0029-passport.ts'
import * as models from './0030-models.ts'
import * as money from './0031-money.ts'
import * as search from './0032-search.ts'
import * as push from './0033-push.ts'
import * as reports from './0034-reports.ts'
import * as askedTogether from './0035-asked-together.ts'
import * as modelProtocol from './0036-model-protocol.ts'
import * as workerEnvironment from './0037-worker-environment.ts'
import * as boundDecisions from './0038-bound-decisions.ts'
import * as manualChanges from './0039-manual-changes.ts'
import * as rowChanges from './0040-row-changes.ts'
import * as strangers from './0041-strangers.ts'
import * as outboxAddresses from './0042-outbox-addresses.ts'
import * as ownNames from './0043-own-names.ts'
import * as lostDuties from './0044-lost-duties.ts'
import * as waitingBodies from './0045-waiting-bodies.ts'
import * as inventoryImports from './0046-inventory-imports.ts'
import * as destinations from './0047-destinations.ts'
import * as waitingProgress from './0048-waiting-progress.ts'
import * as ends from './0049-ends.ts'
import * as alertWords from './0050-alert-words.ts'
import * as sourceTenants from './0051-source-tenants.ts'
import * as oneValue from './0052-one-value.ts'
import * as snsTopics from './0053-sns-topics.ts'
import * as writeCredential from './0054-write-credential.ts'
import * as statementSnapshots from './0055-statement-snapshots.ts'
import * as hostReserve from './0056-host-reserve.ts'
import * as triage from './0057-triage.ts'
import * as clusterMembers from './0058-cluster-members.ts'
import * as deviceConnections from './0059-device-connections.ts'
import * as retention from './0060-retention.ts'
import * as schemaFloor from './0063-schema-floor.ts'
import * as restorations from './0064-restorations.ts'
import * as erasure from './0065-erasure.ts'
import * as refusedWindowAge from './0067-refused-window-age.ts'
import * as answeredAs from './0070-answered-as.ts'
import * as pageHold from './0071-page-hold.ts'
import * as sitePolicy from './0072-site-policy.ts'
import * as trust from './0073-trust.ts'
import * as decisionRights from './0074-decision-rights.ts'
import * as questionsPassedOn from './0075-questions-passed-on.ts'
import * as notNow from './0076-not-now.ts'
import * as morning from './0078-morning.ts'
import * as trustStops from './0079-trust-stops.ts'
import * as sourceSilences from './0080-source-silences.ts'
import * as erasureOfNamesakes from './0081-erasure-of-namesakes.ts'
import { floorOf } from './floor.ts'

/** Thrown if this build is older than the schema that it found. */
class NewerSchemaError extends Error {
  override name = 'NewerSchemaError' as const
}

/**
 * Records that this build applied these migrations. Records nothing if the schema has no table for
 * builds yet.
 */
async function noteBuild(db: Kysely<unknown>, applied: readonly string[]): Promise<void> {
  if (applied.length === 0 || !(await exists(db, 'schema_build'))) return
  await sql`
    insert into schema_build (migration, build) select name, ${version} from unnest(${[...applied]}::text[]) name
    on conflict (migration) do nothing`.execute(db)
}

/**
 * Describes the applied migrations that are not in `known`, and the build that knows them. Null if
 * all are known.
 */
async function newerThan<T>(db: Kysely<T>, known: readonly string[]): Promise<string | null> {
  if (!(await exists(db, 'kysely_migration'))) return null
  const { rows } = await sql<{ name: string }>`select name from kysely_migration order by name`.execute(db)
  const unknown = rows.map(({ name }) => name).filter((name) => !known.includes(name))
  if (unknown.length === 0) return null
  const build = await newestBuild(db)
  const needed = build === null ? 'the build that applied it' : `build ${build}, which applied it, or a later one`
  return (
    `The schema is newer than this build (${version}), which does not know ${unknown.join(', ')}. Start ${needed}; ` +
    'or restore the backup from before the upgrade'
  )
}

async function newestBuild<T>(db: Kysely<T>): Promise<string | null> {
  if (!(await exists(db, 'schema_build'))) return null
  const { rows } = await sql<{ build: string }>`
    select build from schema_build order by migration desc limit 1`.execute(db)
  return rows[0]?.build ?? null
}

async function exists<T>(db: Kysely<T>, table: string): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`select to_regclass(${table}) is not null as there`.execute(db)
  return rows[0]?.there ?? false
}

/** Why the schema could not be migrated, and what the operator should do. */
type MigrationTrouble = {
  problem: string
  remedy: string
  /** Whether the login or the database perhaps does not exist yet. */
  isAbsent?: boolean
}

const unreachable = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EHOSTUNREACH', 'ECONNRESET']

/**
 * Explains the error that a migration threw. Null if the error is a bug of Nightshift. The text
 * never contains the password of `databaseUrl`. Appendix A of PostgreSQL's manual lists the codes.
 */
export function migrationTrouble(error: unknown, databaseUrl: string): MigrationTrouble | null {
  if (error instanceof NewerSchemaError) return { problem: error.message, remedy: 'Nothing was changed.' }
  const { host, login, database } = partsOf(databaseUrl)
  const { code = '', message = String(error) } = error as { code?: string; message?: string }
  if (unreachable.includes(code))
    return { problem: `Nothing answers at ${host} (${code})`, remedy: 'Start PostgreSQL, or correct DATABASE_URL.' }
  if (code === '28P01' || code === '28000')
    return {
      problem: `PostgreSQL at ${host} refuses the login: ${message}`,
      remedy: "Correct the user or the password of DATABASE_URL, or the server's pg_hba.conf.",
      isAbsent: true,
    }
  if (code === '3D000')
    return {
      problem: `PostgreSQL at ${host} has no database ${database}`,
      remedy: `As its administrator: CREATE DATABASE ${quoted(database)} OWNER ${quoted(login)};`,
      isAbsent: true,
    }
  if (code === '42501') return refused(message, login, database)
  if (/CERT|ALTNAME|VERIFY_LEAF|self-signed/.test(`${code} ${message}`))
    return {
      problem: `The certificate of PostgreSQL at ${host} is not believed: ${message.split(';')[0]}`,
      remedy: 'Name its authority in DATABASE_URL: ?sslmode=verify-full&sslrootcert=/path/ca.pem',
    }
  if (message.includes('pg_trgm'))
    return {
      problem: `PostgreSQL at ${host} has no extension pg_trgm: ${message}`,
      remedy: "Install the package with PostgreSQL's own extensions (postgresql-contrib).",
    }
  return null
}

function refused(message: string, login: string, database: string): MigrationTrouble {
  if (/create role|grant role|nightshift_app/.test(message))
    return {
      problem: `${login} may not create the role nightshift_app, which the services need`,
      remedy: `As PostgreSQL's administrator: CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO ${quoted(login)};`,
    }
  return {
    problem: `${login} may not change the schema of ${database}: ${message}`,
    remedy: `As PostgreSQL's administrator: ALTER DATABASE ${quoted(database)} OWNER TO ${quoted(login)};`,
  }
}

function partsOf(databaseUrl: string): { host: string; login: string; database: string } {
  const url = URL.parse(databaseUrl)
  return {
    host: url?.host || url?.searchParams.get('host') || 'localhost',
    login: decodeURIComponent(url?.username || 'the login'),
    database: decodeURIComponent(url?.pathname.slice(1) || 'of DATABASE_URL'),
  }
}

const quoted = (name: string): string => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`)

/**
 * The migrations in order. The list is append-only, because a released migration is never edited.
 */
const migrations: Record<string, Migration> = {
  '0001-log': log,
  '0002-authority': authority,
  '0003-configuration': configuration,
  '0004-inventory': inventory,
  '0005-roles': roles,
  '0006-sessions': sessions,
  '0007-decisions': decisions,
  '0008-operators': operators,
  '0009-audit': audit,
  '0010-attempts': attempts,
  '0011-oidc': oidc,
  '0012-grants': grants,
  '0013-slack': slack,
  '0014-size': size,
  '0015-placement': placement,
  '0016-platform-effect': platformEffect,
  '0017-devices': devices,
  '0018-lifecycle': lifecycle,
  '0019-audit-chain': auditChain,
  '0020-decision-tokens': decisionTokens,
  '0021-model-servers': modelServers,
  '0022-heartbeats': heartbeats,
  '0023-patience': patience,
  '0024-registry': registry,
  '0025-sources': sources,
  '0026-changes': changes,
  '0027-resource-order': resourceOrder,
  '0028-vm-repairs': vmRepairs,
  '0029-passport': passport,
  '0030-models': models,
  '0031-money': money,
  '0032-search': search,
  '0033-push': push,
  '0034-reports': reports,
  '0035-asked-together': askedTogether,
  '0036-model-protocol': modelProtocol,
  '0037-worker-environment': workerEnvironment,
  '0038-bound-decisions': boundDecisions,
  '0039-manual-changes': manualChanges,
  '0040-row-changes': rowChanges,
  '0041-strangers': strangers,
  '0042-outbox-addresses': outboxAddresses,
  '0043-own-names': ownNames,
  '0044-lost-duties': lostDuties,
  '0045-waiting-bodies': waitingBodies,
  '0046-inventory-imports': inventoryImports,
  '0047-destinations': destinations,
  '0048-waiting-progress': waitingProgress,
  '0049-ends': ends,
  '0050-alert-words': alertWords,
  '0051-source-tenants': sourceTenants,
  '0052-one-value': oneValue,
  '0053-sns-topics': snsTopics,
  '0054-write-credential': writeCredential,
  '0055-statement-snapshots': statementSnapshots,
  '0056-host-reserve': hostReserve,
  '0057-triage': triage,
  '0058-cluster-members': clusterMembers,
  '0059-device-connections': deviceConnections,
  '0060-retention': retention,
  '0063-schema-floor': schemaFloor,
  '0064-restorations': restorations,
  '0065-erasure': erasure,
  '0067-refused-window-age': refusedWindowAge,
  '0070-answered-as': answeredAs,
  '0071-page-hold': pageHold,
  '0072-site-policy': sitePolicy,
  '0073-trust': trust,
  '0074-decision-rights': decisionRights,
  '0075-questions-passed-on': questionsPassedOn,
  '0076-not-now': notNow,
  '0078-morning': morning,
  '0079-trust-stops': trustStops,
  '0080-source-silences': sourceSilences,
  '0081-erasure-of-namesakes': erasureOfNamesakes,
}

const provider: MigrationProvider = { getMigrations: async () => migrations }

/**
 * Migrates a database to the newest schema, as the owner of its tables. Of two simultaneous calls,
 * the second waits (kysely takes an advisory lock). A database that a newer build migrated is not
 * changed: throws a NewerSchemaError if this build may not run on it, otherwise applies nothing.
 * Returns the names of the applied migrations. If a migration fails, throws PostgreSQL's error, and
 * no migration is applied.
 */
export async function migrateToLatest(databaseUrl: string): Promise<{ applied: string[] }> {
  return await migrate(databaseUrl, (migrator) => migrator.migrateToLatest())
}

/**
 * Migrates up to one migration. Tests of upgrades get the schema of an older release in this way.
 */
export async function migrateTo(databaseUrl: string, name: string): Promise<{ applied: string[] }> {
  return await migrate(databaseUrl, (migrator) => migrator.migrateTo(name))
}

async function migrate(
  databaseUrl: string,
  run: (migrator: Migrator) => Promise<MigrationResultSet>,
): Promise<{ applied: string[] }> {
  const db = new Kysely<unknown>({
    dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: databaseUrl, max: 2 }) }),
  })
  try {
    const newer = await newerSchema(db)
    if (newer) throw new NewerSchemaError(newer)
    if ((await newerThan(db, Object.keys(migrations))) !== null) return { applied: [] }
    const { error, results } = await run(new Migrator({ db, provider }))
    if (error) throw error
    const applied = (results ?? []).map((result) => result.migrationName)
    await noteBuild(db, applied)
    return { applied }
  } finally {
    await db.destroy()
  }
}

/**
 * Returns why this build may not run on a schema that a newer build made, with the name of the
 * build to start. Null if this build may run: the schema has no newer migrations, or they do not
 * require more than this build knows.
 */
export async function newerSchema<T>(db: Kysely<T>): Promise<string | null> {
  const newer = await newerThan(db, Object.keys(migrations))
  return newer === null || (await isAboveFloor(db)) ? null : newer
}

/** Returns whether this build may run on a schema that a newer build migrated. */
async function isAboveFloor<T>(db: Kysely<T>): Promise<boolean> {
  const floor = await floorOf(db)
  return floor !== null && Object.hasOwn(migrations, floor)
}

/** Lists the applied migrations that this build does not know. */
export function newerMigrations(applied: readonly string[]): string[] {
  return applied.filter((name) => !Object.hasOwn(migrations, name))
}

/**
 * Lists migrations that this build knows and the database has not applied. `/readyz` requires that
 * no migration is listed.
 */
export async function pendingMigrations<T>(db: Kysely<T>): Promise<string[]> {
  const known = await new Migrator({ db, provider }).getMigrations()
  return known.filter((migration) => !migration.executedAt).map((migration) => migration.name)
}

/**
 * Returns what to do if the schema is older than this build; null if it is not older. Throws if the
 * database does not respond.
 */
export async function olderSchema<T>(db: Kysely<T>): Promise<string | null> {
  const pending = await pendingMigrations(db)
  if (pending.length === 0) return null
  return `apply the migrations with "nightshift migrate", as the login that owns the database; not applied: ${pending.join(', ')}`
}
