import { afterAll, beforeAll, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { sql } from 'kysely'
import { readVariables } from '../../../config/variables.ts'
import type { Trx } from '../../../db/connect.ts'
import { releaseLostRun } from '../../../db/incidents/lost-runs.ts'
import { tellLostDuties } from '../../../db/outbox/lost-duties.ts'
import { slotWithinSeconds } from '../../../domain/page-gate.ts'
import { asked } from '../../support/announced.ts'
import { useDatabase } from '../../support/database.ts'
import {
  alertEnds,
  alertRepeats,
  claims,
  configured,
  deliverRound,
  ends,
  type HeldIncident,
  modelFails,
  opens,
  pagesOf,
  setClock,
  standClock,
  verifies,
  writes,
} from './held-page.ts'

/**
 * Random orders of everything that can happen to an incident whose page waits, against a plain
 * account of what was promised, kept beside the database: when its page may leave at the latest,
 * and what alone excuses it.
 */

const database = useDatabase()
const runs = Number(readVariables('PAGE_GATE_CASES').PAGE_GATE_CASES ?? 30)

type Door =
  | 'slot'
  | 'model'
  | 'write'
  | 'held'
  | 'not_held'
  | 'alert_ends'
  | 'repeat'
  | 'repaired'
  | 'no_fault'
  | 'escalated'
type Happening =
  | { do: Door | 'cancelled' | 'approval' | 'duty' | 'run_lost'; dies: boolean }
  | { do: 'pass'; seconds: number }
  | { do: 'kill'; seconds: number }

const doors: Door[] = [
  'slot',
  'model',
  'write',
  'held',
  'not_held',
  'alert_ends',
  'repeat',
  'repaired',
  'no_fault',
  'escalated',
]
const happening: fc.Arbitrary<Happening> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), seconds: fc.integer({ min: 1, max: 60 }) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom(...doors, ...(['slot', 'write', 'held', 'repaired', 'alert_ends'] as const)),
      dies: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('cancelled' as const, 'approval' as const, 'duty' as const, 'run_lost' as const),
      dies: fc.constant(false),
    }),
  },
)

/** A repair as it goes, with what may come between. */
const repair: fc.Arbitrary<Happening[]> = fc
  .tuple(
    fc.constantFrom<Door[]>(
      ['slot', 'write', 'held', 'repaired', 'alert_ends'],
      ['slot', 'write', 'held', 'alert_ends', 'repaired'],
      ['slot', 'write', 'alert_ends', 'held', 'repaired'],
      ['slot', 'write', 'not_held', 'alert_ends', 'repaired'],
    ),
    fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 5, maxLength: 5 }),
    fc.array(fc.option(happening, { freq: 4 }), { minLength: 5, maxLength: 5 }),
  )
  .map(([path, waits, between]) =>
    path.flatMap((door, index): Happening[] => [
      { do: 'pass', seconds: waits[index] ?? 1 },
      ...(between[index] && between[index].do !== 'pass' ? [between[index]] : []),
      { do: door, dies: false },
    ]),
  )

/** The promise and the fact, without a word of the product's code. */
type Account = {
  hold: number
  at: number
  /** A deliverer is down until then; it is back within a minute. */
  downUntil: number
  status: 'open' | 'working' | 'closed'
  hasHeld: boolean
  isRepaired: boolean
  isOver: boolean
  /** The first fact that lets the page go, and when. */
  releasedAt: number | null
  /** When all that excuses a page was so. */
  excusedAt: number | null
}

const outcomes = new Map<string, number>()

async function play(hold: number, steps: readonly Happening[]): Promise<void> {
  await sql`delete from outbox_address`.execute(database.owner)
  // Ends of the orders before would be a crowd of this minute.
  await sql`update alert set end_received_at = end_received_at - interval '1 day' where end_received_at is not null`.execute(
    database.owner,
  )
  await setClock(database, 0)
  await sql`update platform_config set value = ${String(hold)} where key = 'page.hold'`.execute(database.owner)
  const incident = await opens(database.db, 0)
  const account: Account = {
    hold,
    at: 0,
    downUntil: 0,
    status: 'open',
    hasHeld: false,
    isRepaired: false,
    isOver: false,
    releasedAt: hold === 0 ? 0 : null,
    excusedAt: null,
  }
  try {
    await round(incident, account)
    for (const step of steps) await take(incident, account, step)
    // Whatever happened: with a deliverer alive for a minute after the time is over, nothing waits.
    await pass(incident, account, Math.max(0, hold + 60 - account.at) + 60)
    await settle(incident, account)
  } finally {
    await sql`delete from lost_duty`.execute(database.owner)
  }
}

async function take(incident: HeldIncident, account: Account, step: Happening): Promise<void> {
  if (step.do === 'pass') return await pass(incident, account, step.seconds)
  if (step.do === 'kill') {
    // One that is killed again before it is back stays within its minute.
    if (account.at >= account.downUntil) account.downUntil = account.at + step.seconds
    return
  }
  await happen(incident, account, step.do, step.dies)
  await round(incident, account)
}

async function pass(incident: HeldIncident, account: Account, seconds: number): Promise<void> {
  const until = account.at + seconds
  while (account.at < until) {
    // A deliverer looks each second; what happens between is the same for larger steps, but for
    // those that something is due in.
    const marks = [account.downUntil, slotWithinSeconds, account.hold, until].filter((mark) => mark > account.at)
    account.at = Math.min(...marks)
    await setClock(database, account.at)
    await round(incident, account)
  }
}

async function round(incident: HeldIncident, account: Account): Promise<void> {
  if (account.status === 'open' && account.at >= slotWithinSeconds && account.at >= account.downUntil)
    account.releasedAt ??= account.at
  if (account.at >= account.downUntil) await deliverRound(database.db)
  const pages = await pagesOf(database.db, incident)
  expect(pages).toHaveLength(1)
  const [{ status, leftAfter }] = pages as [(typeof pages)[number]]
  const mayLeaveAt = Math.min(account.hold, account.releasedAt ?? account.hold)
  const mustBeGone = account.at >= account.downUntil && account.at >= mayLeaveAt && account.excusedAt === null
  if (mustBeGone) expect({ status, account }).toMatchObject({ status: 'sent' })
  if (status === 'sent') {
    expect(leftAfter).toBeGreaterThanOrEqual(mayLeaveAt - 0.001)
    expect(leftAfter).toBeLessThanOrEqual(account.hold + 60)
  }
}

async function settle(incident: HeldIncident, account: Account): Promise<void> {
  const [page] = await pagesOf(database.db, incident)
  const isSpared = page?.status === 'dropped'
  expect(page?.status).toBe(account.excusedAt === null ? 'sent' : 'dropped')
  if (isSpared) expect(account.excusedAt).toBeLessThan(account.hold)
  if (account.hold > 0) expect(page?.heldFor).toBeCloseTo(account.hold, 2)
  const outcome = isSpared ? 'no page' : (page?.why ?? 'no hold')
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
}

async function inTrx(dies: boolean, act: (trx: Trx) => Promise<unknown>): Promise<boolean> {
  const killed = new Error('the process was killed')
  try {
    await database.db.transaction().execute(async (trx) => {
      await act(trx)
      if (dies) throw killed
    })
    return true
  } catch (error) {
    if (error === killed) return false
    throw error
  }
}

async function happen(
  incident: HeldIncident,
  account: Account,
  what: Door | 'cancelled' | 'approval' | 'duty' | 'run_lost',
  dies: boolean,
) {
  const release = () => {
    if (account.excusedAt === null) account.releasedAt ??= account.at
  }
  /** After what may excuse the page: it does if it still waits and its time is not over. */
  const weigh = () => {
    const isWaiting = account.releasedAt === null && account.at < account.hold
    if (isWaiting && account.isRepaired && account.hasHeld && account.isOver) account.excusedAt ??= account.at
  }
  const isWorking = account.status === 'working'
  switch (what) {
    case 'slot':
      if (account.status !== 'open' || !(await inTrx(dies, (trx) => claims(trx, incident, 1)))) return
      account.status = 'working'
      return
    case 'model':
      if (isWorking && (await inTrx(dies, (trx) => modelFails(trx, incident)))) release()
      return
    case 'write':
      if (isWorking) await inTrx(dies, (trx) => writes(trx, incident))
      return
    case 'held':
    case 'not_held':
      if (isWorking && (await inTrx(dies, (trx) => verifies(trx, incident, what)))) account.hasHeld = what === 'held'
      return
    case 'alert_ends':
      if (dies || account.isOver || !isWorkingOrRepaired(account)) return
      await alertEnds(database.db, incident, account.at)
      account.isOver = true
      return weigh()
    case 'repeat':
      if (!dies && !account.isOver && isWorking) await alertRepeats(database.db, incident)
      return
    case 'repaired':
      if (!isWorking || !(await inTrx(dies, (trx) => ends(trx, incident, 'repaired')))) return
      account.status = 'closed'
      account.isRepaired = true
      if (!account.hasHeld) release()
      return weigh()
    case 'no_fault':
    case 'escalated':
    case 'cancelled':
      if (account.status === 'closed' || !(await inTrx(dies, (trx) => ends(trx, incident, what)))) return
      account.status = 'closed'
      return release()
    case 'approval':
      if (!isWorking) return
      await asked(database.db, incident.id)
      return release()
    case 'duty':
      await tellLostDuties(database.db, [{ name: 'Temporal', status: 'failed', detail: 'away', remedy: null }])
      return release()
    case 'run_lost':
      if (
        !isWorking ||
        (await releaseLostRun(database.db, { incidentId: incident.id, attempt: 1, runId: null })) === null
      )
        return
      // What comes after a lost run is another attempt, and the page is gone.
      account.status = 'closed'
      return release()
  }
}

const isWorkingOrRepaired = ({ status, isRepaired }: Account) => status === 'working' || isRepaired

beforeAll(async () => {
  await standClock(database)
  await configured(database, { 'webhook.critical.url': 'http://127.0.0.1:9/critical', 'page.hold': '0' })
})
afterAll(() => {
  const said = [...outcomes].map(([outcome, count]) => `${outcome} ${count}`).join(', ')
  console.info(`page gate: ${runs} random orders: ${said}`)
})

test(
  'no page leaves later than its time and a minute, except if the repair held and the alert ended before, and none is held again',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.constantFrom(0, 300, 300), fc.integer({ min: 1, max: 300 })),
        fc.oneof(fc.array(happening, { minLength: 3, maxLength: 24 }), repair),
        play,
      ),
      { numRuns: runs, endOnFailure: true },
    )
  },
  Math.max(600_000, runs * 3_000),
)
