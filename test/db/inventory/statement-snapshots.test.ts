import { beforeAll, expect, test } from '@jest/globals'
import { putSource, removeSource } from '../../../db/inventory/sources.ts'
import {
  dropOldSnapshots,
  hasSnapshotOfToday,
  keepSnapshot,
  listSnapshots,
} from '../../../db/inventory/statement-snapshots.ts'
import type { StatementCounts } from '../../../domain/statement-snapshot.ts'
import { moveClock, useDatabase } from '../../support/database.ts'

const database = useDatabase()

const put = (name: string) =>
  putSource(
    database.db,
    name,
    {
      kind: 'postgresql',
      url: `postgresql://${name}.example:5432/shop`,
      credential: null,
      writeCredential: null,
      caFile: null,
      scheme: null,
      headers: {},
      certFile: null,
      keyFile: null,
      options: {},
      timeoutSeconds: 10,
    },
    'anna',
  )

const counted = (calls: number, statement = 'SELECT * FROM orders WHERE id = ?'): StatementCounts => ({
  server: '7123',
  version: '17.2',
  countedSince: '2026-11-01T00:00:00.000Z',
  isWhole: true,
  counts: [{ key: '10 5 -77', calls, ms: 12.5, rows: 3, touched: 40, statement }],
})

beforeAll(async () => {
  await put('shop-db')
})

test('a server has one snapshot per day, whoever counts, for eight days', async () => {
  const { db, owner } = database
  for (let day = 0; day < 10; day += 1) {
    await moveClock(owner, `${day} days`)
    expect(await hasSnapshotOfToday(db, 'shop-db')).toBe(false)
    await keepSnapshot(db, 'shop-db', counted(day))
    await keepSnapshot(db, 'shop-db', counted(1_000))
    expect(await hasSnapshotOfToday(db, 'shop-db')).toBe(true)
  }
  const kept = await listSnapshots(db, 'shop-db')
  expect(kept.map(({ counts }) => counts[0]?.calls)).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
  expect(kept[0]).toMatchObject({ ...counted(2), countedSince: expect.stringMatching(/^2026-11-01T00:00:00/) })
  await dropOldSnapshots(db)
  const { count } = await db
    .selectFrom('statementSnapshot')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow()
  expect(Number(count)).toBe(8)
})

test('a secret in a statement is not stored, and a removed source removes its snapshots', async () => {
  const { db } = database
  await put('other-db')
  const token = `ghp_${'a1B2'.repeat(9)}`
  await keepSnapshot(db, 'other-db', counted(1, `SELECT "${token}"`))
  const [snapshot] = await listSnapshots(db, 'other-db')
  expect(snapshot?.counts[0]).toMatchObject({ calls: 1, statement: expect.not.stringContaining(token) })
  await removeSource(db, 'other-db', 'anna')
  expect(await listSnapshots(db, 'other-db')).toEqual([])
  await keepSnapshot(db, 'other-db', counted(1))
  expect(await listSnapshots(db, 'other-db')).toEqual([])
})
