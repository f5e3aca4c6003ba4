import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { connect, rfc3339 } from '../../db/connect.ts'
import { verifyAudit } from '../../db/log/audit.ts'
import { verifyGrants } from '../../db/verify/grants.ts'
import { verifyIncident } from '../../db/verify/incident.ts'
import { verifyChanges, verifyKept } from '../../db/verify/row-changes.ts'
import { addFindings, noFindings } from '../../domain/findings.ts'
import { useApi } from '../support/api.ts'
import { aSitesLife } from './verify/life.ts'

const api = useApi()

test.each([
  ['2026-11-21 01:02:03+00', '2026-11-21T01:02:03.000000Z'],
  ['2026-11-21 01:02:03.45+00', '2026-11-21T01:02:03.450000Z'],
  ['2026-11-25 16:32:33.531067+05:30', '2026-11-25T11:02:33.531067Z'],
  ['2026-01-01 00:00:00.000001+05:45', '2025-12-31T18:15:00.000001Z'],
  ['2026-12-31 22:30:00-03', '2027-01-01T01:30:00.000000Z'],
  ['1890-01-01 00:00:00+00:53:28', '1889-12-31T23:06:32.000000Z'],
])('the time %s is %s, in any time zone', (written, read) => expect(rfc3339(written)).toBe(read))

test.each([
  'Wed 25 Nov 16:32:33.531067 2026 IST',
  '25.11.2026 16:32:33.531067 IST',
  '11/25/2026 16:32:33 UTC',
  'infinity',
  '0044-03-15 12:00:00+00 BC',
  '2026-11-25 16:32:33',
])('%s is refused and not passed on', (written) => expect(() => rfc3339(written)).toThrow(/only reads ISO style/))

const settings = {
  timezone: 'Asia/Kolkata',
  datestyle: 'SQL, DMY',
  intervalstyle: 'sql_standard',
  extra_float_digits: '-15',
  bytea_output: 'escape',
}

/** Everything that `nightshift verify --all` finds, as a process that connects now sees it. */
async function findings(url: string, owner = false) {
  const db = connect(url, { max: 2, owner })
  try {
    const found = noFindings()
    for (const { id } of await db.selectFrom('incident').select('id').execute())
      addFindings(found, await verifyIncident(db, id))
    addFindings(found, await verifyChanges(db, 0))
    addFindings(found, await verifyKept(db))
    addFindings(found, await verifyGrants(db))
    const { at } = await db.selectFrom('audit').select('at').limit(1).executeTakeFirstOrThrow()
    return { ...found, audit: (await verifyAudit(db)).problem, at }
  } finally {
    await db.destroy()
  }
}

test('a database and a role with other settings verify the same, and so do rows that are written under them', async () => {
  await aSitesLife(api)
  const before = await findings(api.url)
  expect(before).toMatchObject({ differences: [], untold: {}, audit: null })
  const database = sql.id(new URL(api.url).pathname.slice(1))
  for (const [name, value] of Object.entries(settings)) {
    await sql`alter database ${database} set ${sql.raw(name)} = ${sql.lit(value)}`.execute(api.owner)
  }
  expect(await findings(api.url)).toEqual(before)
  expect(await findings(api.url, true)).toEqual(before)

  // Written by a session that has these settings: a setting by hand, and a row of the audit.
  const client = new pg.Client({ connectionString: api.url })
  await client.connect()
  expect((await client.query('show datestyle')).rows).toEqual([{ DateStyle: 'SQL, DMY' }])
  await client.query(`insert into platform_config (key, value) values ('agent.paused', 'true')`)
  await client.query(`set role nightshift_app`)
  await client.query(`begin`)
  await client.query(`insert into operator (id, name, role) values ('opr_kolkata', 'kolkata', 'viewer')`)
  await client.query(
    `insert into audit (who, what, subject, detail) values ('sql', 'operator.added', 'kolkata', 'As viewer, risks up to critical, all incident types')`,
  )
  await client.query(`commit`)
  await client.end()
  expect(await findings(api.url)).toMatchObject({ differences: [], audit: null })

  const { body } = await api.get('/audit')
  const times = JSON.stringify(body).match(/"at":"[^"]+"/g) ?? []
  expect(times.length).toBeGreaterThan(0)
  expect(times.filter((time) => !/^"at":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"$/.test(time))).toEqual([])
})
