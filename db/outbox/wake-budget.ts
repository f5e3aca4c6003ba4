import { sql } from 'kysely'
import { type NewEvent, systemActor } from '../../domain/event.ts'
import { formatTimeOfDay } from '../../domain/format.ts'
import type { Hours } from '../../domain/hours.ts'
import { type MorningCard, nightAt } from '../../domain/night.ts'
import type { Trigger } from '../../domain/notification.ts'
import { databaseTime } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { readSettings } from '../settings.ts'
import type { IncidentRow } from '../tables.ts'
import { hasDestination } from './destinations.ts'

/**
 * The budget of a night (`page.wake_budget`): how many questions in incidents below critical may
 * wake somebody. Further questions are sent at once to channels that wake nobody, and the morning
 * card lists them. No question is delayed if no card would be sent.
 */

/** Why a message wakes nobody now. `note`: the log row about this, only once for each question. */
export type WaitsForMorning = { text: string; note: NewEvent<'noted'> | null }

/** Why a budget that is set delays nothing: no card would report the questions. */
export type IdleBudget = 'the card is off' | 'nobody takes the card'

/**
 * Explains why the budget of wakes delays nothing. Null if the budget delays questions, or if no
 * budget is set.
 */
export async function whyBudgetIsIdle(db: Db): Promise<IdleBudget | null> {
  return await db.transaction().execute(async (trx) => {
    const settings = await readSettings(trx)
    if (settings.value<number | null>('page.wake_budget') === null) return null
    if (settings.value<MorningCard>('morning.card') === 'off') return 'the card is off'
    return (await hasDestination(trx, 'morning')) ? null : 'nobody takes the card'
  })
}

/**
 * Explains why a message waits for the morning; null if it is sent now. `askedAbout`: the question
 * of the message, with the number of its reminder.
 */
export async function whyUntilMorning(
  trx: Trx,
  incident: Pick<IncidentRow, 'id' | 'severity'>,
  trigger: Trigger,
  askedAbout: { id: string; reminder: number; expiresAt: string } | undefined,
): Promise<WaitsForMorning | null> {
  if (incident.severity === 'critical' || !(trigger === 'approval' || handedOver.includes(trigger))) return null
  const settings = await readSettings(trx)
  const budget = settings.value<number | null>('page.wake_budget')
  if (budget === null || settings.value<MorningCard>('morning.card') === 'off') return null
  const night = nightAt(settings.value<Hours>('page.night'), await databaseTime(trx))
  if (!night || !(await hasDestination(trx, 'morning'))) return null
  if (trigger !== 'approval') return (await hasWaiting(trx, incident.id, night.since)) ? afterQuestion : null
  if (!askedAbout) return null
  return await ofQuestion(trx, askedAbout, { ...night, budget })
}

/** Triggers that follow a delayed question, above all its expiry. */
const handedOver: readonly Trigger[] = ['escalated', 'reminder']

const afterQuestion: WaitsForMorning = {
  text: 'The approval waits for the morning card and woke nobody. Below critical, this incident wakes nobody before the night ends.',
  note: null,
}

async function hasWaiting(trx: Trx, incidentId: string, since: string): Promise<boolean> {
  const row = await trx
    .selectFrom('questionWake')
    .innerJoin('approval', 'approval.id', 'questionWake.approvalId')
    .select('approvalId')
    .where('approval.incidentId', '=', incidentId)
    .where('wakes', '=', false)
    .where('questionWake.at', '>=', since)
    .limit(1)
    .executeTakeFirst()
  return row !== undefined
}

/** Whether this question waits for the morning, in a night that has not ended. */
export async function waitsForMorning(trx: Trx, approvalId: string): Promise<boolean> {
  const night = nightAt((await readSettings(trx)).value<Hours>('page.night'), await databaseTime(trx))
  if (!night) return false
  const row = await trx
    .selectFrom('questionWake')
    .select('approvalId')
    .where('approvalId', '=', approvalId)
    .where('wakes', '=', false)
    .where('at', '>=', night.since)
    .executeTakeFirst()
  return row !== undefined
}

type Asked = { id: string; reminder: number; expiresAt: string }

async function ofQuestion(
  trx: Trx,
  { id, reminder, expiresAt }: Asked,
  { since, budget }: { since: string; budget: number },
): Promise<WaitsForMorning | null> {
  const known = await trx.selectFrom('questionWake').select('wakes').where('approvalId', '=', id).executeTakeFirst()
  const until = `The approval waits for the morning card, and expires at ${formatTimeOfDay(expiresAt, 'utc').slice(0, 5)} UTC if nobody answers.`
  if (known) return known.wakes ? null : { text: until, note: null }
  // Uses up no budget for reminders of a question that was asked by day, because people were
  // notified then.
  if (reminder > 0) return { text: until, note: null }
  // Takes a lock, so that two simultaneous questions never exceed the budget: the second waits and
  // then counts the first.
  await sql`select pg_advisory_xact_lock(hashtextextended('wake budget', 0))`.execute(trx)
  const { count } = await trx
    .selectFrom('questionWake')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('wakes', '=', true)
    .where('at', '>=', since)
    .executeTakeFirstOrThrow()
  const wakes = Number(count) < budget
  await trx.insertInto('questionWake').values({ approvalId: id, wakes }).execute()
  if (wakes) return null
  const text = `Wakes nobody: ${Number(count)} of ${budget} approvals have woken somebody this night. ${until}`
  return {
    text,
    note: { kind: 'noted', actor: systemActor, detail: text, metadata: { code: 'wake_held', text, approvalId: id } },
  }
}
