import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import { z } from 'zod'
import { version } from '../domain/version.ts'

const run = promisify(execFile)
const maxOutputBytes = 1_000_000
const dumpName = 'database.dump'
const manifestName = 'manifest.json'

/**
 * The facts of a backup. They are read in the same snapshot as the dump, so that dump and facts are
 * of the same moment.
 */
const manifest = z.object({
  format: z.literal(1),
  nightshift: z.string(),
  at: z.string(),
  postgresql: z.number().int(),
  migrations: z.array(z.string()),
  incidents: z.number().int(),
  audit: z.object({ rows: z.number().int(), head: z.string() }),
  dump: z.object({ sha256: z.string(), bytes: z.number().int() }),
})
export type BackupManifest = z.infer<typeof manifest>

/** The reason why a backup was not made or is not restored, in one sentence, with the remedy. */
export class BackupError extends Error {
  override name = 'BackupError' as const
}

/**
 * Dumps the database into a new folder below `directory`, with a manifest next to the dump. No
 * process has to stop, because dump and manifest are read in one snapshot. The folder gets its name
 * when it is complete. The folder is as secret as the database.
 */
export async function backUp(
  databaseUrl: string,
  directory: string,
): Promise<{ path: string; manifest: BackupManifest }> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  let part: string | null = null
  try {
    await client.query('begin isolation level repeatable read read only')
    const found = await describeDatabase(client)
    part = join(directory, `.${nameOf(found.at)}.part`)
    await mkdir(part, { recursive: true, mode: 0o700 })
    const dump = join(part, dumpName)
    const { rows } = await client.query<{ id: string }>('select pg_export_snapshot() as id')
    await program('pg_dump', databaseUrl, [
      ...['--format=custom', '--no-owner', `--snapshot=${rows[0]?.id}`, '--file', dump],
    ])
    const made: BackupManifest = { ...found, dump: { sha256: await digestOf(dump), bytes: (await stat(dump)).size } }
    await writeFile(join(part, manifestName), `${JSON.stringify(made, null, 2)}\n`, { mode: 0o600 })
    const path = join(directory, nameOf(found.at))
    await rename(part, path)
    return { path, manifest: made }
  } catch (error) {
    if (part !== null) await rm(part, { recursive: true, force: true })
    throw error
  } finally {
    await client.end()
  }
}

/**
 * Explains that this login does not own the database. For example, the services' login may only
 * read and append.
 */
export const notItsOwner = (login: string): string =>
  `The login ${login} does not own this database: give DATABASE_URL the login that the migrations run as.`

const nameOf = (at: string) => `nightshift-${at.replace(/\.\d+/, '').replaceAll(/[-:]/g, '')}`

async function describeDatabase(client: pg.Client): Promise<Omit<BackupManifest, 'dump'>> {
  const { rows: found } = await client.query<{ there: boolean; owns: boolean; login: string }>(`
    select to_regclass('kysely_migration') is not null and to_regclass('audit_head') is not null as there,
      pg_has_role(relowner, 'usage') as owns, current_user as login
    from (values (to_regclass('audit_head'))) as wanted (oid) left join pg_class using (oid)`)
  if (!found[0]?.there)
    throw new BackupError('This database has no data of Nightshift 0.2.0 or later: correct DATABASE_URL.')
  if (!found[0].owns) throw new BackupError(notItsOwner(found[0].login))
  const { rows } = await client.query<{ text: string }>(`
    select jsonb_build_object(
      'at', to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'postgresql', current_setting('server_version_num')::int / 10000,
      'migrations', (select jsonb_agg(name order by name) from kysely_migration),
      'incidents', (select count(*) from incident),
      'audit', (select jsonb_build_object('rows', seq, 'head', hash) from audit_head))::text as text`)
  return { format: 1, nightshift: version, ...JSON.parse(rows[0]?.text ?? '{}') }
}

/**
 * Reads a backup and checks its dump against its manifest. Throws a BackupError if the folder is
 * not a backup, or if the backup was altered or cut.
 */
export async function readBackup(path: string): Promise<{ manifest: BackupManifest; dump: string }> {
  const text = await readFile(join(path, manifestName), 'utf8').catch(() => null)
  if (text === null) throw new BackupError(`${path} is not a backup: it has no ${manifestName}.`)
  let said: unknown
  try {
    said = JSON.parse(text)
  } catch {
    throw new BackupError(`${manifestName} of ${basename(path)} is not valid JSON: the backup is cut or altered.`)
  }
  const parsed = manifest.safeParse(said)
  if (!parsed.success)
    throw new BackupError(`This version (${version}) cannot read ${manifestName} of ${basename(path)}.`)
  const dump = join(path, dumpName)
  const sha256 = await digestOf(dump).catch(() => null)
  if (sha256 !== parsed.data.dump.sha256)
    throw new BackupError(`${dumpName} of ${basename(path)} differs from its manifest: it is cut or altered.`)
  return { manifest: parsed.data, dump }
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/**
 * Runs one of PostgreSQL's programs. The password is in its environment and never in its arguments,
 * because other users can see arguments.
 */
export async function program(name: 'pg_dump' | 'pg_restore', databaseUrl: string, args: string[]): Promise<void> {
  const url = new URL(databaseUrl)
  const password = decodeURIComponent(url.password) || url.searchParams.get('password')
  const env = { ...process.env, ...(password && { PGPASSWORD: password }) }
  url.password = ''
  url.searchParams.delete('password')
  try {
    await run(name, ['--dbname', url.href, ...args], { env, maxBuffer: maxOutputBytes })
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string }
    if (code === 'ENOENT')
      throw new BackupError(`This machine has no ${name}: install PostgreSQL's client programs (postgresql-client).`)
    if (stderr.includes('server version mismatch'))
      throw new BackupError(`${name} is older than the server: install the client programs of the server's version.`)
    throw new BackupError(`${name} failed: ${stderr.trim().split('\n').slice(0, 3).join(' ')}`)
  }
}
