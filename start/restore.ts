import pg from 'pg'
import { connect, type Db } from '../db/connect.ts'
import { verifyAudit } from '../db/log/audit.ts'
import { noteRestoration } from '../db/restorations.ts'
import { verifyNext } from '../db/verify/page.ts'
import type { Findings, VerifiedPage } from '../domain/chain.ts'
import { addFindings, noFindings } from '../domain/findings.ts'
import { version } from '../domain/version.ts'
import { migrateToLatest, newerMigrations } from '../migrations/migrate.ts'
import { BackupError, type BackupManifest, program, readBackup } from './backup.ts'

type Restored = {
  manifest: BackupManifest
  applied: string[]
  found: Findings
  isHeadThere: boolean
  /** Standing grants that were ended: how often each was used since is not known. */
  endedGrants: number
}

const idsAtOnce = 200

/**
 * Restores a backup into this address' empty database, brings it to this build's schema, and holds
 * everything in it against its logs and the manifest's head. Refuses with a BackupError, changing
 * nothing, an altered archive, one of another major version or newer than this build, or a database
 * with content. The dump goes in whole or not at all. Ends standing grants.
 */
export async function restoreBackup(databaseUrl: string, path: string): Promise<Restored> {
  const { manifest, dump } = await readBackup(path)
  const [theirs, ours] = [manifest.nightshift.split('.')[0], version.split('.')[0]]
  if (theirs !== ours)
    throw new BackupError(
      `The backup is of Nightshift ${manifest.nightshift}, this is ${version}: restore it with a build ${theirs}.x, then upgrade.`,
    )
  const unknown = newerMigrations(manifest.migrations)
  if (unknown.length > 0)
    throw new BackupError(
      `The backup is newer than this build (${version}), which does not know ${unknown.join(', ')}: restore it with ${manifest.nightshift} or later.`,
    )
  await prepareTarget(databaseUrl, manifest)
  await program('pg_restore', databaseUrl, ['--no-owner', '--exit-on-error', '--single-transaction', dump])
  const { applied } = await migrateToLatest(databaseUrl)
  const db = connect(databaseUrl, { owner: true, max: 2 })
  try {
    // Before anything is added: what is held is what the backup had.
    const verified = await verifyRestored(db, manifest.audit.head)
    return { manifest, applied, ...verified, endedGrants: await noteRestoration(db, manifest.at) }
  } finally {
    await db.destroy()
  }
}

/** The database is empty, its server no older, and the dump's granted role is there. */
async function prepareTarget(databaseUrl: string, manifest: BackupManifest): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ tables: number; postgresql: number; role: boolean; name: string }>(`
      select (select count(*)::int from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'S')) as tables,
        current_setting('server_version_num')::int / 10000 as postgresql, current_database() as name,
        exists (select from pg_roles where rolname = 'nightshift_app') as role`)
    const [found] = rows
    if (!found) throw new BackupError('The database does not say what it holds.')
    if (found.tables > 0)
      throw new BackupError(
        `The database ${found.name} is not empty. Keep it under another name: ALTER DATABASE ${found.name} RENAME TO ${found.name}_before_restore; CREATE DATABASE ${found.name};`,
      )
    if (found.postgresql < manifest.postgresql)
      throw new BackupError(
        `The backup is of PostgreSQL ${manifest.postgresql}, this server is ${found.postgresql}: restore it on ${manifest.postgresql} or later.`,
      )
    if (!found.role) {
      await client.query('create role nightshift_app nologin').catch(() => {
        throw new BackupError(
          'This login may not make the role nightshift_app. As the administrator: CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO the login;',
        )
      })
      await client.query('grant nightshift_app to current_user')
    }
  } finally {
    await client.end()
  }
}

/**
 * All that `nightshift verify --all` holds, without an API: nothing may start on a database that
 * does not hold.
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
