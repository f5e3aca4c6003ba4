import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import pg from 'pg'
import { temporaryDirectory } from '../../support/directory.ts'
import { type SiteDatabase, siteDatabase } from '../../support/site-database.ts'

const files = temporaryDirectory()
let shop: SiteDatabase
let writer: pg.Client

beforeAll(async () => {
  shop = await siteDatabase(files.path)
  const [user, password] = readFileSync(shop.writeCredential.replace('file:', ''), 'utf8').trim().split(':')
  writer = new pg.Client({ connectionString: shop.url.replace('//', `//${user}:${password}@`) })
  await writer.connect()
})
afterAll(async () => {
  await writer?.end()
  await shop?.drop()
  files.remove()
})

test('the login of the writes runs no code of its own as the owner of the function that drops slots', async () => {
  await writer.query(`
    create function pg_temp.seize() returns boolean language plpgsql as $$
      begin execute format('create role seized_%s', pg_backend_pid()); return false; end $$;
    create temp view pg_replication_slots as select name 'none' as slot_name, pg_temp.seize() as active,
        '' as slot_type, '' as plugin, '' as database, '' as restart_lsn, '' as confirmed_flush_lsn, '' as xmin, '' as catalog_xmin`)
  expect((await writer.query(`select nightshift.drop_inactive_slot('none', '') as done`)).rows).toEqual([
    { done: false },
  ])
  const { processID } = writer as unknown as { processID: number }
  expect(await shop.run(`select rolname from pg_roles where rolname = $1`, [`seized_${processID}`])).toEqual([])
})
