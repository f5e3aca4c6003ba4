import { afterAll, beforeAll } from '@jest/globals'
import { sql } from 'kysely'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { connect, type Db } from '../../db/connect.ts'
import { claimIncident } from '../../db/incidents/incidents.ts'
import type { Alert } from '../../domain/alert.ts'
import { anAlert } from './an-alert.ts'
import { freshDatabase } from './broker.ts'
import { patienceMs } from './directory.ts'

export { anAlert }

export type TestDatabase = { db: Db; owner: Db; url: string }

const poolSize = 20

/**
 * Does this with each, as many at once as there are connections: who waited for one longer would be
 * refused on a busy machine.
 */
export async function allAtOnce<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const lane = async () => {
    for (const item of left) await act(item)
  }
  await Promise.all(Array.from({ length: poolSize }, lane))
}

/**
 * A database of its own for one test file, as the services see it (`db`) and as its owner does
 * (`owner`).
 */
export function useDatabase(): TestDatabase {
  const database = {} as TestDatabase
  let drop: () => Promise<void>
  beforeAll(async () => {
    const fresh = await freshDatabase()
    drop = fresh.drop
    Object.assign(database, {
      url: fresh.url,
      db: connect(fresh.url, { max: poolSize, patienceMs }),
      owner: connect(fresh.url, { owner: true, max: 2, patienceMs }),
    })
  })
  afterAll(async () => {
    await database.db.destroy()
    await database.owner.destroy()
    await drop()
  })
  return database
}

/** An incident as an alert opens it. */
export async function openedIncident(db: Db, change: Partial<Alert> = {}): Promise<string> {
  const { incidentId } = await ingestAlert(db, anAlert(change))
  if (!incidentId) throw new Error('the alert opened no incident')
  return incidentId
}

/** The same, taken by a run. */
export async function claimedIncident(db: Db, change: Partial<Alert> = {}): Promise<string> {
  const incidentId = await openedIncident(db, change)
  await db.transaction().execute((trx) =>
    claimIncident(trx, {
      incidentId,
      attempt: 1,
      workflowId: `investigate:${incidentId}:1`,
      role: 'leader',
      groupId: 'grp_test',
      timeBudgetSeconds: 1800,
    }),
  )
  return incidentId
}

/**
 * A setting as a row of earlier says it: nobody is asked, nothing is checked, and it takes effect
 * at the next reading.
 */
export async function storeSetting(db: Db, key: string, value: string): Promise<void> {
  await db
    .insertInto('platformConfig')
    .values({ key, value } as never)
    .execute()
}

/**
 * Lets the database's clock stand still at what it says now: what a test sends at once is at once,
 * however long that takes.
 */
export async function stopClock(owner: Db): Promise<void> {
  const { rows } = await sql<{ now: string }>`select nightshift_now()::text as now`.execute(owner)
  await sql`
    create or replace function nightshift_now() returns timestamptz language sql volatile parallel safe
    as ${sql.raw(`$$ select '${rows[0]?.now}'::timestamptz $$`)}`.execute(owner)
}

/** Moves the database's clock: every statement takes time from this one function. */
export async function moveClock(owner: Db, by: string): Promise<void> {
  await sql`
    create or replace function nightshift_now() returns timestamptz language sql volatile parallel safe
    as ${sql.raw(`$$ select clock_timestamp() + interval '${by}' $$`)}`.execute(owner)
}
