import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { openShop } from './shop.ts'

/**
 * Memory and temporary files of a server that answers what its plan took for small: the rows came
 * after its statistics.
 */

let shop: Awaited<ReturnType<typeof openShop>>

beforeAll(async () => {
  shop =
    await openShop(`create table notes (id int, kind text, note text); alter table notes set (autovacuum_enabled = false);
    alter table notes alter note set storage external; insert into notes values (1, 'a', 'x'); create index on notes (id);`)
  await shop.run(`insert into notes select n, 'wide', repeat(md5(n::text), 25000) from generate_series(1, 300) n;
    insert into notes select n, 'many', md5(n::text) from generate_series(1, 900000) n`)
})
afterAll(async () => await shop?.drop())

/** What the answering process has of its own at most, sampled while it answers. */
async function peakOf(sql: string): Promise<{ seen: string; megabytes: number }> {
  await shop.query('select 1')
  const own = await shop.run(
    "select pid from pg_stat_activity where application_name = 'nightshift' and datname = current_database()",
  )
  let peak = 0
  const sampling = setInterval(() => {
    for (const { pid } of own) {
      const [, kilobytes] = /^RssAnon:\s+(\d+)/m.exec(readStatus(pid)) ?? []
      peak = Math.max(peak, Number(kilobytes ?? 0) / 1_000)
    }
  }, 5)
  const seen = await shop.query(sql)
  clearInterval(sampling)
  return { seen, megabytes: peak }
}

/** Empty: it ended. */
function readStatus(pid: unknown): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8')
  } catch {
    return ''
  }
}

/** Thirty-two megabytes of values, what holds them, and what the process began with. */
const mostMegabytes = 200

test.each([
  "select length(string_agg(note, ',')) from notes",
  'select array_agg(note) from notes',
  'select left(jsonb_agg(note)::text, 100) from notes',
  "select left(array_to_string(array(select note from notes), ''), 10)",
  'select count(*) from notes where (select count(*) from (select array_agg(n.note) a from notes n) x where cardinality(a) > 0) > 0',
  "select kind, string_agg(note, ',') filter (where id > 0) from notes group by kind having length(string_agg(note, '')) > 3",
  'select cardinality(array_agg(id)) from notes',
  "select upper(note) || note || note || note || note from notes where kind = 'wide'",
  'with recursive walk as (select id, note, 1 as depth from notes where id = 1 union all select n.id, n.note, w.depth + 1 from notes n join walk w on n.id = w.id where w.depth < 90000) select count(*) from walk',
])('%s keeps no more than is read', async (sql) => {
  const { megabytes } = await peakOf(sql)
  expect(megabytes).toBeLessThan(mostMegabytes)
})
