import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { isAnyWaiting, storeWaiting, takeNextPart, waitingBodies } from '../../../db/alerts/waiting-bodies.ts'
import { anAlert, useDatabase } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'

const database = useDatabase()

beforeEach(async () => {
  await sql`truncate waiting_part, waiting_body, refused_body`.execute(database.owner)
})

const body = (name: string, count: number, change: object = {}) =>
  storeWaiting(database.db, {
    dialect: 'alertmanager',
    sender: 'am',
    alerts: Array.from({ length: count }, (_, n) => anAlert({ fingerprint: `${name}-${n}`, name, ...change })),
  })

const sights = async (name: string) => {
  const rows = await database.db.selectFrom('alert').select('count').where('name', '=', name).execute()
  return rows.map(({ count }) => count)
}

const once = (count: number) => Array.from({ length: count }, () => 1)

test('a worker that dies during a part leaves it whole, and no alert counts twice', async () => {
  await body('dies', 600)
  expect(await takeNextPart(database.db)).toHaveLength(250)
  // The next part is stopped before it writes its last rows, and its connection ends there.
  await database.owner.transaction().execute(async (trx) => {
    await sql`lock table incident_event in exclusive mode`.execute(trx)
    const taking = takeNextPart(database.db).catch((error: Error) => error.message)
    await eventually('the part to be half stored', async () => {
      const { rows } = await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%incident_event%'`.execute(
        database.owner,
      )
      return rows.length > 0
    })
    expect(await taking).toMatch(/terminat|ECONNRESET/)
  })
  expect(await sights('dies')).toEqual(once(250))
  await sql`update waiting_body set next_at = now()`.execute(database.owner)
  while (await takeNextPart(database.db));
  expect(await sights('dies')).toEqual(once(600))
  expect(await waitingBodies(database.db)).toEqual({
    bodies: 0,
    alerts: 0,
    oldestSeconds: 0,
    idleSeconds: expect.any(Number),
  })
})

test('four workers process two bodies in order: each alert once, and the ends after their beginnings', async () => {
  await body('order', 500, { startsAt: '2026-11-21T01:00:00Z' })
  await body('order', 20, { status: 'resolved', startsAt: '2026-11-21T01:00:00Z', endsAt: '2026-11-21T01:30:00Z' })
  const worker = async () => {
    while ((await waitingBodies(database.db)).bodies > 0) await takeNextPart(database.db)
  }
  await Promise.all([worker(), worker(), worker(), worker()])
  const rows = await database.db
    .selectFrom('alert')
    .select(['count', 'incidentId'])
    .where('name', '=', 'order')
    .execute()
  expect(rows.map(({ count }) => count)).toEqual(once(500))
  // An end that overtook its beginning would have no incident.
  expect(rows.filter(({ incidentId }) => incidentId === null)).toEqual([])
})

test('an alert that cannot be stored delays no other alert, and is named', async () => {
  await sql`
    create function refuse_odd() returns trigger language plpgsql as $$
      begin if new.title = 'odd' then raise exception 'this one breaks something'; end if; return new; end $$`.execute(
    database.owner,
  )
  await sql`create trigger refuse_odd before insert on incident for each row execute function refuse_odd()`.execute(
    database.owner,
  )
  await storeWaiting(database.db, {
    dialect: 'alertmanager',
    sender: 'am',
    alerts: ['fine', 'odd', 'odd', 'fine too'].map((title, n) =>
      anAlert({ title, fingerprint: `${title} ${n}`, name: 'odd_one' }),
    ),
  })
  await body('behind', 2)
  let failed = 0
  while ((await waitingBodies(database.db)).bodies > 0) {
    await takeNextPart(database.db).catch(() => (failed += 1))
    await sql`update waiting_body set next_at = now()`.execute(database.owner)
  }
  await sql`drop trigger refuse_odd on incident`.execute(database.owner)
  // The part three times, then each of the two once: with retries of each, 250 held the queue for
  // an hour.
  expect(failed).toBe(5)
  expect(await sights('odd_one')).toEqual([1, 1])
  expect(await sights('behind')).toEqual([1, 1])
  expect(await database.db.selectFrom('refusedBody').selectAll().execute()).toMatchObject([
    { sender: 'am', code: 'UNSTORABLE', reason: 'this one breaks something' },
  ])
})

test('whether an alert waits is found without reading all waiting bodies', async () => {
  await body('crowd', 500)
  await database.db.transaction().execute(async (trx) => {
    const scans = async () =>
      (
        await sql<{ seqScan: number; idxScan: number }>`
          select seq_scan, idx_scan from pg_stat_xact_user_tables where relname = 'waiting_part'`.execute(trx)
      ).rows[0] ?? { seqScan: 0, idxScan: 0 }
    const before = await scans()
    expect(await isAnyWaiting(trx, [anAlert({ fingerprint: 'crowd-499' })])).toBe(true)
    expect(await isAnyWaiting(trx, [anAlert({ fingerprint: 'crowd-500' })])).toBe(false)
    const { seqScan, idxScan } = await scans()
    expect([seqScan - before.seqScan, idxScan - before.idxScan]).toEqual([0, 2])
  })
})

test('a body at work is not idle, however old it is, and a body that nobody processes is', async () => {
  await body('slow', 600)
  await sql`update waiting_body set received_at = received_at - interval '10 minutes'`.execute(database.owner)
  expect((await waitingBodies(database.db)).idleSeconds).toBeGreaterThan(590)
  await takeNextPart(database.db)
  const { alerts, oldestSeconds, idleSeconds } = await waitingBodies(database.db)
  expect([alerts, oldestSeconds > 590, idleSeconds < 300]).toEqual([350, true, true])
})
