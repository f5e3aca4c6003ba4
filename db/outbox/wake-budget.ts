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
 * The budget of a night (`page.wake_budget`): so many questions below critical wake somebody.
 * Channels get the others at once, and the morning card lists them. Nothing waits where no card
 * would go out.
 */

/** Why a message wakes nobody now. `note`: the row that the log gets of it, once a question. */
export type WaitsForMorning = { text: string; note: NewEvent<'noted'> | null }

/** The reason why a set budget holds nothing back: no card would tell. */
export type IdleBudget = 'the card is off' | 'nobody takes the card'

/** Null: it holds back, or none is set. */
export async function whyBudgetIsIdle(db: Db): Promise<IdleBudget | null> {
  return await db.transaction().execute(async (trx) => {
    const settings = await readSettings(trx)
    if (settings.value<number | null>('page.wake_budget') === null) return null
    if (settings.value<MorningCard>('morning.card') === 'off') return 'the card is off'
    return (await hasDestination(trx, 'morning')) ? null : 'nobody takes the card'
  })
}

/** `askedAbout`: the question that the message is, with how often it was told before. */
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

/** What follows on a question that waits: its end by time above all. */
const handedOver: readonly Trigger[] = ['escalated', 'reminder']

const afterQuestion: WaitsForMorning = {
  text: 'It waits for the morning card: its question woke nobody, and below critical nothing of it does before the night is over.',
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

/** Does this question wait, in a night that is not over? */
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
  const until = `It waits for the morning card, and ends at ${formatTimeOfDay(expiresAt, 'utc').slice(0, 5)} UTC if nobody answers.`
  if (known) return known.wakes ? null : { text: until, note: null }
  // Asked by day: it was told then, and its reminders use up nothing.
  if (reminder > 0) return { text: until, note: null }
  // Two questions at once never exceed the budget: the second waits here, and counts the first.
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
  const text = `Wakes nobody: ${Number(count)} of ${budget} questions have woken somebody this night. ${until}`
  return {
    text,
    note: { kind: 'noted', actor: systemActor, detail: text, metadata: { code: 'wake_held', text, approvalId: id } },
  }
}
