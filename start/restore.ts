import pg from 'pg'
import { connect, type Db } from '../db/connect.ts'
import { verifyAudit } from '../db/log/audit.ts'
import { noteRestoration } from '../db/restorations.ts'
import { verifyNext } from '../db/verify/page.ts'
import type { Findings, VerifiedPage } from '../domain/chain.ts'
import { addFindings, noFindings } from '../domain/findings.ts'
import { version } from '../domain/version.ts'
import { migrateToLatest, newerMigrations } from '../migrations/migrate.ts'
import { BackupError, type BackupManifest, notItsOwner, program, readBackup } from './backup.ts'

type Restored = {
  manifest: BackupManifest
  applied: string[]
  found: Findings
  isHeadThere: boolean
  /**
   * The number of standing grants that the restore ended, because their use since the backup is
   * unknown.
   */
  endedGrants: number
}

const idsAtOnce = 200

/**
 * Restores a backup into the empty database at this address, migrates it to this build's schema,
 * and checks the restored logs and the head of the audit log. Throws BackupError, and changes
 * nothing, if the archive was altered, is of another major version or newer than this build, or if
 * the database is not empty. Restores the dump completely or not at all. Ends standing grants.
 */
export async function restoreBackup(databaseUrl: string, path: string): Promise<Restored> {
  const { manifest, dump } = await readBackup(path)
  const [theirs, ours] = [manifest.nightshift.split('.')[0], version.split('.')[0]]
  if (theirs !== ours)
    throw new BackupError(
      `The backup is from Nightshift ${manifest.nightshift}, but this build is ${version}: restore the backup with a build ${theirs}.x, then upgrade.`,
    )
  const unknown = newerMigrations(manifest.migrations)
  if (unknown.length > 0)
    throw new BackupError(
      `The backup is newer than this build (${version}), which does not know ${unknown.join(', ')}: restore the backup with ${manifest.nightshift} or later.`,
    )
  await prepareTarget(databaseUrl, manifest)
  await program('pg_restore', databaseUrl, ['--no-owner', '--exit-on-error', '--single-transaction', dump])
  const { applied } = await migrateToLatest(databaseUrl)
  const db = connect(databaseUrl, { owner: true, max: 2 })
  try {
    // Verifies before the restore adds rows, so that exactly the content of the backup is checked.
    const verified = await verifyRestored(db, manifest.audit.head)
    return { manifest, applied, ...verified, endedGrants: await noteRestoration(db, manifest.at) }
  } finally {
    await db.destroy()
  }
}

/**
 * Checks that the database is empty and that its server is not older than the backup's server.
 * Creates the role to which the dump grants rights.
 */
async function prepareTarget(databaseUrl: string, manifest: BackupManifest): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{
      tables: number
      postgresql: number
      role: boolean
      name: string
      login: string
      owns: boolean
    }>(`
      select (select count(*)::int from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'S')) as tables,
        current_setting('server_version_num')::int / 10000 as postgresql, current_database() as name,
        current_user as login, (select pg_has_role(datdba, 'usage') from pg_database where datname = current_database()) as owns,
        exists (select from pg_roles where rolname = 'nightshift_app') as role`)
    const [found] = rows
    if (!found) throw new BackupError('The content of the database cannot be read.')
    if (found.tables > 0)
      throw new BackupError(
        `The database ${found.name} is not empty. Keep it under another name: ALTER DATABASE ${found.name} RENAME TO ${found.name}_before_restore; CREATE DATABASE ${found.name} OWNER ${found.login};`,
      )
    if (!found.owns) throw new BackupError(notItsOwner(found.login))
    if (found.postgresql < manifest.postgresql)
      throw new BackupError(
        `The backup is from PostgreSQL ${manifest.postgresql}, but this server is ${found.postgresql}: restore the backup on ${manifest.postgresql} or later.`,
      )
    if (!found.role) {
      await client.query('create role nightshift_app nologin').catch(() => {
        throw new BackupError(
          'This login may not create the role nightshift_app. As the administrator: CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO the login;',
        )
      })
      await client.query('grant nightshift_app to current_user')
    }
  } finally {
    await client.end()
  }
}

/**
 * Runs the checks of `nightshift verify --all` without an API, because nothing may start on a
 * database that fails these checks.
 */
async function verifyRestored(db: Db, head: string): Promise<Pick<Restored, 'found' | 'isHeadThere'>> {
  const found = noFindings()
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { nextCursor, incidents, events, ...page }: VerifiedPage = await verifyNext(db, cursor, idsAtOnce)
    addFindings(found, page)
    cursor = nextCursor
  }
  const audit = await verifyAudit(db, head === '' ? undefined : head)
  if (audit.problem)
    found.differences.push({ subject: `row ${audit.problem.seq} of the audit`, what: audit.problem.what })
  return { found, isHeadThere: audit.ok }
}
