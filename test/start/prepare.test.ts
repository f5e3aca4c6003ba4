import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/access/principals.ts'
import { connect } from '../../db/connect.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const prepare = fileURLToPath(new URL('../../start/prepare.ts', import.meta.url))
const admin = 'an-admin-token-of-my-own-choosing'

const run = (environment: Record<string, string> = {}) =>
  promisify(execFile)(process.execPath, [prepare], {
    env: {
      DATABASE_URL: database.url,
      BOOTSTRAP_ADMIN_TOKEN: admin,
      AGENT_API_KEY: 'the-agents-own-key',
      ...environment,
    },
  })

test('a production is prepared with the tokens of its environment, any number of times', async () => {
  await run()
  await run()
  expect(await principalOf(database.db, admin)).toMatchObject({ role: 'admin', name: 'admin' })
  expect(await principalOf(database.db, 'the-agents-own-key')).toMatchObject({ role: 'agent', operatorId: null })
})

test('each such token is made once, and the audit log names who made it', async () => {
  const rows = await database.db.selectFrom('audit').select(['who', 'what', 'detail']).orderBy('id').execute()
  expect(rows).toEqual([
    { who: 'start', what: 'operator.added', detail: 'As admin, risks up to critical, all incident types, by a start' },
    { who: 'start', what: 'token.minted', detail: 'Minted admin of admin, by a start: admin' },
    { who: 'start', what: 'token.minted', detail: 'Minted agent, by a start: agent:incident-investigator' },
  ])
})

test('a revoked token is not restored by a restart', async () => {
  await sql`update api_token set revoked_at = nightshift_now() where role = 'admin'`.execute(database.db)
  await run()
  expect(await principalOf(database.db, admin)).toBeNull()
})

test('a weak token is refused before anything is done', async () => {
  await expect(run({ BOOTSTRAP_ADMIN_TOKEN: 'admin' })).rejects.toThrow(
    /BOOTSTRAP_ADMIN_TOKEN:? must have at least 24 characters/,
  )
})

/** A login that owns its database and may make no roles, as a managed PostgreSQL hands it out. */
async function plainLogin(name: string): Promise<string> {
  const url = new URL(database.url)
  await sql.raw(`create role ${name} login password 'secret-of-the-login'`).execute(database.owner)
  await sql.raw(`create database ${name} owner ${name}`).execute(database.owner)
  url.username = name
  url.password = 'secret-of-the-login'
  url.pathname = `/${name}`
  return url.href
}

test('a login that may make no roles gets the statements for its administrator, and then the migration works', async () => {
  const name = `plain_${process.pid}`
  const url = await plainLogin(name)
  const refused = run({ DATABASE_URL: url })
  await expect(refused).rejects.toThrow(`CREATE ROLE nightshift_app NOLOGIN; GRANT nightshift_app TO ${name};`)
  await expect(refused).rejects.not.toThrow(/secret-of-the-login| {4}at /)

  await sql.raw(`grant nightshift_app to ${name}`).execute(database.owner)
  expect((await run({ DATABASE_URL: url })).stdout).toMatch(/Applied 0001-log/)
})

test('a login that has only the role of the services runs them, once the owner has migrated', async () => {
  const name = `services_${process.pid}`
  const url = new URL(database.url)
  url.username = name
  url.password = 'secret-of-the-login'
  await sql
    .raw(`create role ${name} login password 'secret-of-the-login' in role nightshift_app`)
    .execute(database.owner)
  expect((await run({ DATABASE_URL: url.href })).stdout).toMatch(/The schema is up to date/)
  const db = connect(url.href, { max: 1 })
  const owned = sql`alter table incident_event disable trigger all`.execute(db)
  await expect(owned).rejects.toMatchObject({ code: '42501' })
  await expect(sql`set role none; delete from incident_event`.execute(db)).rejects.toMatchObject({ code: '42501' })
  await db.destroy()
})

test.each([
  [
    'a server that is not there',
    (url: URL) => {
      url.port = '1'
    },
    /Nothing answers at 127.0.0.1:1 \(ECONNREFUSED\)/,
  ],
  [
    'a wrong password',
    (url: URL) => {
      url.password = 'wrong'
    },
    /refuses the login: password authentication failed/,
  ],
  [
    'a database that is not there',
    (url: URL) => {
      url.pathname = '/not_there'
    },
    /CREATE DATABASE not_there OWNER/,
  ],
])('%s is named, with the remedy', async (_, change, words) => {
  const url = new URL(database.url)
  change(url)
  await expect(run({ DATABASE_URL: url.href })).rejects.toThrow(words)
})

test('errors of the environment are listed without a stack', async () => {
  const refused = run({ DATABASE_URL: '', LLM_MAX_TURNS: 'many' })
  await expect(refused).rejects.toThrow(/2 problem\(s\):[\s\S]*LLM_MAX_TURNS[\s\S]*DATABASE_URL is required/)
  await expect(refused).rejects.not.toThrow(/ at .*config\.ts/)
})
