import { Kysely, PostgresDialect } from 'kysely'
import { type Migration, type MigrationProvider, type MigrationResultSet, Migrator } from 'kysely/migration'
import pg from 'pg'
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
import { NewerSchemaError, newerThan, noteBuild } from './schema-build.ts'

/** In order and append-only: a migration that has been released is never edited. */
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
}

const provider: MigrationProvider = { getMigrations: async () => migrations }

/**
 * Brings a database to the newest schema, as the owner of its tables. Two at once are one after the other (kysely holds an
 * advisory lock). A database that a newer build migrated is a NewerSchemaError: it is not touched. Answers the names it applied; throws what PostgreSQL said when one fails, and then none was applied.
 */
export async function migrateToLatest(databaseUrl: string): Promise<{ applied: string[] }> {
  return await migrate(databaseUrl, (migrator) => migrator.migrateToLatest())
}

/** The same up to one migration: the schema of an older release, for tests that upgrade from it. */
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
    const { error, results } = await run(new Migrator({ db, provider }))
    if (error) throw error
    const applied = (results ?? []).map((result) => result.migrationName)
    await noteBuild(db, applied)
    return { applied }
  } finally {
    await db.destroy()
  }
}

/** What a newer build applied and this one does not know, in words that name the build; null where there is nothing. */
export async function newerSchema<T>(db: Kysely<T>): Promise<string | null> {
  return await newerThan(db, Object.keys(migrations))
}

/** Names of migrations that this build knows and the database has not seen: `/readyz` wants none. */
export async function pendingMigrations<T>(db: Kysely<T>): Promise<string[]> {
  const known = await new Migrator({ db, provider }).getMigrations()
  return known.filter((migration) => !migration.executedAt).map((migration) => migration.name)
}
