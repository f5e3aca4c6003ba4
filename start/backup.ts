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

/** A backup's facts: read in the dumped snapshot, so that both are of one moment. */
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

/** Why a backup was not made or is not restored, in one sentence, and what helps. */
export class BackupError extends Error {
  override name = 'BackupError' as const
}

/**
 * Dumps the database of this address into a fresh folder below `directory`, beside a manifest.
 * Nothing has to stop: the dump is one snapshot, and the manifest is read in it. The folder gets
 * its name when whole; it is as secret as the database.
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

const nameOf = (at: string) => `nightshift-${at.replace(/\.\d+/, '').replaceAll(/[-:]/g, '')}`

async function describeDatabase(client: pg.Client): Promise<Omit<BackupManifest, 'dump'>> {
  const { rows: there } = await client.query<{ there: boolean }>(
    "select to_regclass('kysely_migration') is not null and to_regclass('audit_head') is not null as there",
  )
  if (!there[0]?.there)
    throw new BackupError('This database holds no Nightshift of 0.2.0 or later: correct DATABASE_URL.')
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
 * Reads a backup and holds its dump against its manifest. Throws a BackupError for no backup, or an
 * altered or cut one.
 */
export async function readBackup(path: string): Promise<{ manifest: BackupManifest; dump: string }> {
  const text = await readFile(join(path, manifestName), 'utf8').catch(() => null)
  if (text === null) throw new BackupError(`${path} is no backup: it holds no ${manifestName}.`)
  let said: unknown
  try {
    said = JSON.parse(text)
  } catch {
    throw new BackupError(`${manifestName} of ${basename(path)} is no JSON: the backup is cut or altered.`)
  }
  const parsed = manifest.safeParse(said)
  if (!parsed.success)
    throw new BackupError(`${manifestName} of ${basename(path)} is none that this version (${version}) reads.`)
  const dump = join(path, dumpName)
  const sha256 = await digestOf(dump).catch(() => null)
  if (sha256 !== parsed.data.dump.sha256)
    throw new BackupError(`${dumpName} of ${basename(path)} is not what its manifest says: it is cut or altered.`)
  return { manifest: parsed.data, dump }
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/**
 * Runs one of PostgreSQL's programs; the password is in its environment, never in its arguments,
 * which others see.
 */
export async function program(name: 'pg_dump' | 'pg_restore', databaseUrl: string, args: string[]): Promise<void> {
  const url = new URL(databaseUrl)
  const env = { ...process.env, ...(url.password && { PGPASSWORD: decodeURIComponent(url.password) }) }
  url.password = ''
  try {
    await run(name, ['--dbname', url.href, ...args], { env, maxBuffer: maxOutputBytes })
  } catch (error) {
    const { code, stderr = '' } = error as { code?: unknown; stderr?: string }
    if (code === 'ENOENT')
      throw new BackupError(`There is no ${name} here: install PostgreSQL's client programs (postgresql-client).`)
    if (stderr.includes('server version mismatch'))
      throw new BackupError(`${name} is older than the server: install the client programs of the server's version.`)
    throw new BackupError(`${name} failed: ${stderr.trim().split('\n').slice(0, 3).join(' ')}`)
  }
}
