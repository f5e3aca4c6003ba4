import { randomBytes } from 'node:crypto'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { listRights } from '../../domain/database-rights.ts'
import { emptyDatabase } from './broker.ts'

/**
 * A database of a site on the test run's PostgreSQL, with the two logins that the rights on the
 * page give, and sessions of its application.
 */
export type SiteDatabase = {
  /** As a source names it. */
  url: string
  /** References of the two credentials, below `directory`. */
  credential: string
  writeCredential: string
  /** Runs statements as the owner of everything. */
  run(sql: string, values?: unknown[]): Promise<Record<string, unknown>[]>
  /** Opens a session of the application by its name. */
  open(application: string): Promise<pg.Client>
  drop(): Promise<void>
}

export async function siteDatabase(directory: string, rights: { write?: boolean } = {}): Promise<SiteDatabase> {
  const database = await emptyDatabase()
  const suffix = randomBytes(4).toString('hex')
  const clients: pg.Client[] = []
  const connect = async (url: string, application: string) => {
    const client = new pg.Client({ connectionString: url, application_name: application })
    // It may be ended by what is tested.
    client.on('error', () => undefined)
    await client.connect()
    clients.push(client)
    return client
  }
  const admin = await connect(database.url, 'site-admin')
  const give = async (login: 'read' | 'write') => {
    const role = `nightshift_${login}_${suffix}`
    const password = randomBytes(12).toString('hex')
    for (const statement of listRights('PostgreSQL', login))
      await admin.query(statement.replaceAll(`nightshift_${login}`, role).replace('choose-one', password))
    const file = join(directory, `${login}-${suffix}`)
    writeFileSync(file, `${role}:${password}\n`)
    chmodSync(file, 0o600)
    return { role, reference: `file:${file}` }
  }
  const read = await give('read')
  const write = rights.write === false ? null : await give('write')
  const application = `shop_${suffix}`
  await admin.query(`create role ${application} login password 'shop'`)
  await admin.query(`grant all on schema public to ${application}`)
  await admin.query(
    'create table orders (id int primary key, note text); insert into orders select n from generate_series(1, 50) n',
  )
  await admin.query(`grant all on orders to ${application}`)
  const { host, pathname } = new URL(database.url)
  return {
    url: `postgresql://${host}${pathname}`,
    credential: read.reference,
    writeCredential: write?.reference ?? '',
    run: async (sql, values = []) => (await admin.query(sql, values)).rows,
    open: (name) => connect(`postgresql://${application}:shop@${host}${pathname}`, name),
    async drop() {
      await Promise.all(clients.filter((each) => each !== admin).map((each) => each.end().catch(() => undefined)))
      for (const role of [read.role, write?.role, application].filter((each) => each !== undefined))
        await admin.query(`drop owned by ${role} cascade; drop role ${role}`)
      await admin.end()
      await database.drop()
    },
  }
}
