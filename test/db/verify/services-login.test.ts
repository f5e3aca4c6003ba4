import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { connect } from '../../../db/connect.ts'
import { verifyChanges } from '../../../db/verify/row-changes.ts'
import { useApi } from '../../support/api.ts'

const api = useApi()

test('a function that runs as its owner looks up names in temporary tables last', async () => {
  const { rows } = await sql<{ name: string; path: string | null }>`
    select proname as name, (select setting from unnest(proconfig) as setting where setting like 'search_path=%') as path
    from pg_proc where pronamespace = 'public'::regnamespace and prosecdef order by 1`.execute(api.owner)
  expect(rows.length).toBeGreaterThanOrEqual(3)
  expect(rows.filter(({ path }) => !path?.endsWith(', pg_temp'))).toEqual([])
})

test.each([
  ['row_change', sql`update public.operator set role = 'admin', max_risk = 'critical' where name = 'viewer'`],
  ['audit_head', sql`insert into public.audit (who, what, subject, detail) values ('viewer', 'config.put', 'x', 'x')`],
  [
    'platform_config_revision',
    sql`insert into public.platform_config (key, value, updated_by) values ('agent.max_turns', '9', 'user:viewer')`,
  ],
])("a temporary %s replaces nothing, and its trigger runs with nobody else's rights", async (table, statement) => {
  const taken = new Error('taken back')
  const looked = api.db.transaction().execute(async (trx) => {
    await sql`create temp table ${sql.table(table)} (like public.${sql.table(table)} including all) on commit drop`.execute(
      trx,
    )
    await sql`grant all on pg_temp.${sql.table(table)} to public`.execute(trx)
    await sql`
      create function pg_temp.intrude() returns trigger language plpgsql as $$
      begin perform set_config('test.ran_as', current_user, true); return new; end $$`.execute(trx)
    await sql`
      create trigger intrude before insert or update on pg_temp.${sql.table(table)} for each row
      execute function pg_temp.intrude()`.execute(trx)
    await sql`insert into pg_temp.${sql.table(table)} overriding system value select * from public.${sql.table(table)}`.execute(
      trx,
    )
    await sql`select set_config('test.ran_as', 'nobody', true)`.execute(trx)
    const kept = () => sql<{ all: number }>`select count(*)::int as all from pg_temp.${sql.table(table)}`.execute(trx)
    const before = (await kept()).rows
    await statement.execute(trx)
    const ranAs = await sql`select current_setting('test.ran_as') as who`.execute(trx)
    expect([ranAs.rows, (await kept()).rows]).toEqual([[{ who: 'nobody' }], before])
    throw taken
  })
  await expect(looked).rejects.toBe(taken)
  expect((await verifyChanges(api.db, 0)).differences).toEqual([])
})

const login = `services_of_verify_${process.pid}`

test('a login that is a member of the services alone changes no setting without a row, whichever role it takes', async () => {
  await sql.raw(`create role ${login} login password 'of-the-login' in role nightshift_app`).execute(api.owner)
  const url = new URL(api.url)
  url.username = login
  url.password = 'of-the-login'
  const change = sql`
    insert into platform_config (key, value, updated_by) values ('approval.risk.vm_stop', 'none', 'sql')
    on conflict (key) do update set value = platform_config.value || ' '`
  // `owner`: takes no other role on connecting.
  for (const owner of [true, false]) {
    const db = connect(url.href, { max: 1, owner })
    await change.execute(db)
    await db.destroy()
  }
  const found = (await verifyChanges(api.db, 0)).differences
  expect(found.map(({ subject }) => subject)).toEqual(
    ['approval.risk.vm_stop', 'approval.risk.vm_stop'].map((key) => expect.stringContaining(key)),
  )
  await change.execute(api.owner)
  expect((await verifyChanges(api.db, 0)).differences).toHaveLength(2)
})
