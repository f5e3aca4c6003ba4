import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import pg from 'pg'

/**
 * What a released version left behind: the rows of its database and the histories of its runs.
 * Later versions are held against it, because this is what they find on the morning of an upgrade.
 */
export type Fixture = {
  version: string
  /** The commit that recorded it. */
  commit: string
  recordedAt: string
  /** Names of the migrations that its database had seen, in order. */
  migrations: string[]
  /** Rows as PostgreSQL writes them in JSON, by table. */
  rows: Record<string, Record<string, unknown>[]>
  /** Temporal histories by workflow id, in the JSON form of the SDK. */
  histories: Record<string, unknown>
  /** Journals of agents by device: its files by name. v0.1.0 recorded none. */
  journals?: Record<string, Record<string, string>>
  /** Decision tokens that people of that version held, unused, for questions that waited. */
  decisionTokens?: { approvalId: string; token: string }[]
}

/**
 * The commits that were released, by version: a test may build one and hold this version against
 * it.
 */
export const releasedCommits: Record<string, string> = {
  'v0.1.0': '75d116dc90366b46cd88d4c14a7733ea3d7e9c21',
  'v0.2.0': '78106252ef857b16b97ff0a466c04d43d29875d1',
}

const fixturesDirectory = join(import.meta.dirname, 'fixtures')

export function fixtureVersions(): string[] {
  return readdirSync(fixturesDirectory).sort()
}

/** Reads the fixture of one released version. Throws when there is none. */
export function readFixture(version: string): Fixture {
  const file = join(fixturesDirectory, version, 'fixture.json.gz')
  return JSON.parse(gunzipSync(readFileSync(file)).toString('utf8')) as Fixture
}

export function writeFixture(fixture: Fixture): void {
  const file = join(fixturesDirectory, fixture.version, 'fixture.json.gz')
  writeFileSync(file, gzipSync(JSON.stringify(fixture), { level: 9 }))
}

/** Every row of every table of ours, in the order of the primary key where there is one. */
export async function dumpRows(databaseUrl: string): Promise<Pick<Fixture, 'migrations' | 'rows'>> {
  return await withClient(databaseUrl, async (client) => {
    const tables = await client.query<{ name: string }>(
      `select table_name as name from information_schema.tables
       where table_schema = 'public' and table_type = 'BASE TABLE' and table_name not like 'kysely_%' order by 1`,
    )
    const rows: Fixture['rows'] = {}
    for (const { name } of tables.rows) {
      const found = await client.query<{ row: Record<string, unknown> }>(
        `select to_jsonb(t) as row from ${pg.escapeIdentifier(name)} t`,
      )
      rows[name] = found.rows.map(({ row }) => row)
    }
    const seen = await client.query<{ name: string }>('select name from kysely_migration order by name')
    return { migrations: seen.rows.map(({ name }) => name), rows }
  })
}

/**
 * Puts the rows back into an empty database of the same schema. Constraints between tables and
 * triggers are off meanwhile, as they are when a dump is restored; identity columns go on behind
 * the highest value.
 */
export async function restoreRows(databaseUrl: string, rows: Fixture['rows']): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client.query(`begin; set local session_replication_role = 'replica'`)
    for (const [name, all] of Object.entries(rows)) {
      const table = pg.escapeIdentifier(name)
      await client.query(`delete from ${table}`)
      await client.query(
        `insert into ${table} overriding system value select * from jsonb_populate_recordset(null::${table}, $1::jsonb)`,
        [JSON.stringify(all)],
      )
    }
    // A transaction id of the recorded server may be one that this server has not reached: the live
    // stream would wait for it.
    await client.query(`update incident_event set tx = '3'::xid8`)
    for (const name of Object.keys(rows)) {
      const { rows: numbered } = await client.query<{ sequence: string; column: string }>(
        `select column_name as "column", pg_get_serial_sequence($1, column_name) as sequence from information_schema.columns
        where table_schema = 'public' and table_name = $1 and is_identity = 'YES'`,
        [name],
      )
      for (const { sequence, column } of numbered)
        await client.query(`select setval('${sequence}', (select coalesce(max(${column}), 1) from ${name}))`)
    }
    await client.query('commit')
  })
}

async function withClient<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}
