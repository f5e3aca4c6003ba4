import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { principalOf } from '../../db/tokens.ts'
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

test('a production is prepared with the tokens its environment names, as often as one likes', async () => {
  await run()
  await run()
  expect(await principalOf(database.db, admin)).toMatchObject({ role: 'admin', name: 'admin' })
  expect(await principalOf(database.db, 'the-agents-own-key')).toMatchObject({ role: 'agent', operatorId: null })
})

test('each such token is minted once, and the audit says by whom', async () => {
  const rows = await database.db.selectFrom('audit').select(['who', 'what', 'detail']).orderBy('id').execute()
  expect(rows).toEqual([
    { who: 'start', what: 'token.minted', detail: 'Minted admin: admin, by a start' },
    { who: 'start', what: 'token.minted', detail: 'Minted agent:incident-investigator: agent, by a start' },
  ])
})

test('a token that was revoked is not brought back by a restart', async () => {
  await sql`update api_token set revoked_at = nightshift_now() where role = 'admin'`.execute(database.db)
  await run()
  expect(await principalOf(database.db, admin)).toBeNull()
})

test('a token that could be guessed is refused before anything is done', async () => {
  await expect(run({ BOOTSTRAP_ADMIN_TOKEN: 'admin' })).rejects.toThrow(
    /BOOTSTRAP_ADMIN_TOKEN must have at least 24 characters/,
  )
})
