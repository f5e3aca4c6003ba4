import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { readSettings } from '../../db/settings.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
beforeEach(async () => {
  await sql`delete from platform_config`.execute(database.db)
})

test('plain INSERT statements into platform_config work, and each leaves a revision', async () => {
  for (const statement of [
    `INSERT INTO platform_config (key, value) VALUES ('agent.concurrency.disk_pressure', '10');`,
    `INSERT INTO platform_config (key, value) VALUES ('agent.concurrency.replication_lag', '2');`,
    `INSERT INTO platform_config (key, value) VALUES ('webhook.critical.url', 'https://hooks.slack.com/...');`,
    `INSERT INTO platform_config (key, value) VALUES ('webhook.critical.template', 'slack');`,
    `INSERT INTO platform_config (key, value) VALUES ('webhook.escalated.url', 'https://ops.example.com/webhook');`,
    `INSERT INTO platform_config (key, value) VALUES ('webhook.escalated.template', 'generic');`,
  ]) {
    await sql.raw(statement).execute(database.db)
  }
  const settings = await readSettings(database.db)
  expect(settings.value('agent.concurrency', 'disk_pressure')).toBe(10)
  expect(settings.value('agent.concurrency', 'replication_lag')).toBe(2)
  expect(settings.value('agent.concurrency', 'anything_else')).toBe(5)
  expect(settings.value('webhook.critical.template')).toBe('slack')
  const { rows } = await sql<{ count: number }>`select count(*) as count from platform_config_revision`.execute(
    database.db,
  )
  expect(Number(rows[0]?.count)).toBe(6)
})

test('a type overrides the global value, which overrides the environment, which overrides the default', async () => {
  const at = async () =>
    (await readSettings(database.db, { LLM_MAX_TURNS: '12' })).effective('agent.max_turns', 'disk_pressure')
  expect(await at()).toMatchObject({ value: 12, source: 'environment' })
  expect((await readSettings(database.db)).effective('agent.max_turns', 'disk_pressure')).toMatchObject({
    value: 10,
    source: 'default',
  })
  await sql`insert into platform_config (key, value) values ('agent.max_turns', '20')`.execute(database.db)
  expect(await at()).toMatchObject({ value: 20, source: 'global' })
  await sql`insert into platform_config (key, value) values ('agent.max_turns.disk_pressure', '30')`.execute(
    database.db,
  )
  expect(await at()).toMatchObject({ value: 30, source: 'type' })
})

test('an invalid value in the night is ignored and reported, and investigations continue', async () => {
  await sql`insert into platform_config (key, value) values ('agent.max_turns', 'ten')`.execute(database.db)
  const effective = (await readSettings(database.db)).effective('agent.max_turns', 'disk_pressure')
  expect(effective).toMatchObject({
    value: 10,
    source: 'default',
    problem: expect.stringContaining('agent.max_turns'),
  })
})

test('an update is a revision with the old value and the new, and revisions cannot be changed', async () => {
  await sql`insert into platform_config (key, value) values ('agent.paused', 'false')`.execute(database.db)
  await sql`update platform_config set value = 'true', updated_by = 'user:anna' where key = 'agent.paused'`.execute(
    database.db,
  )
  const revisions = await database.db
    .selectFrom('platformConfigRevision')
    .selectAll()
    .where('key', '=', 'agent.paused')
    .orderBy('id')
    .execute()
  expect(revisions.at(-1)).toMatchObject({ version: 2, oldValue: 'false', newValue: 'true', actor: 'user:anna' })
  await expect(sql`update platform_config_revision set actor = 'x'`.execute(database.owner)).rejects.toThrow(
    /append-only/,
  )
})
