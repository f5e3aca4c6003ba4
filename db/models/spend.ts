import { sql } from 'kysely'
import type { TokenUsage } from '../../domain/chat.ts'
import { systemActor } from '../../domain/event.ts'
import { type AnswerCost, costOf, formatDollars, type PriceRule, priceOf } from '../../domain/price.ts'
import type { SpentOn } from '../../domain/status.ts'
import type { Usage } from '../../domain/usage.ts'
import { cleanse } from '../../safety/redact.ts'
import { onceNow } from '../clock.ts'
import type { Db, Trx } from '../connect.ts'
import { lockIncident } from '../incidents/incidents.ts'
import { append } from '../log/append.ts'
import { enqueueNotification } from '../outbox/deliveries.ts'
import type { Scope } from '../scope.ts'
import { readSettings, type SettingsReader } from '../settings.ts'

type SpendPeriod = 'day' | 'month'

/** Dollars spent in the current day and month (UTC), with the budgets. */
export type Spend = Record<SpendPeriod, { dollars: number; cap: number | null }>

const noticePercents = [80, 100] as const

const periodWords = { day: 'today (UTC)', month: 'this month (UTC)' } as const

/**
 * Computes the cost of a response. A model without a known price costs nothing while no budget is
 * set. With a budget, the highest known price is used, so that the budget always has an effect.
 */
export async function costOfAnswer(db: Db | Trx, models: readonly string[], usage: TokenUsage): Promise<AnswerCost> {
  const settings = await readSettings(db)
  const { isAssumed, ...price } = priceOf(models, settings.value<PriceRule[]>('agent.prices'))
  const isCapped = capOf(settings, 'day') !== null || capOf(settings, 'month') !== null
  if (isAssumed && !isCapped) return { dollars: 0, in: 0, out: 0, isAssumed: true }
  return { dollars: costOf(usage, price), ...price, ...(isAssumed && { isAssumed }) }
}

const capOf = (settings: SettingsReader, period: SpendPeriod) => settings.value<number | null>(`agent.budget_${period}`)

/** Reads how much was spent, and the caps in force. */
export async function spendNow(db: Db | Trx, given?: SettingsReader): Promise<Spend> {
  const settings = given ?? (await readSettings(db))
  const { rows } = await sql<{ day: number; month: number }>`
    select coalesce(sum(cost) filter (where day = (${onceNow} at time zone 'UTC')::date), 0)::float8 as day,
      coalesce(sum(cost), 0)::float8 as month
    from model_spend where day >= date_trunc('month', ${onceNow} at time zone 'UTC')::date`.execute(db)
  const { day = 0, month = 0 } = rows[0] ?? {}
  return {
    day: { dollars: day, cap: capOf(settings, 'day') },
    month: { dollars: month, cap: capOf(settings, 'month') },
  }
}

/**
 * Finds the budget that is used up, in words that name its setting; null while money is left.
 * Without a budget nothing is summed.
 */
export async function spentCap(db: Db | Trx): Promise<{ period: SpendPeriod; text: string } | null> {
  const settings = await readSettings(db)
  if (capOf(settings, 'day') === null && capOf(settings, 'month') === null) return null
  const spend = await spendNow(db, settings)
  const period = (['month', 'day'] as const).find((each) => {
    const { dollars, cap } = spend[each]
    return cap !== null && dollars >= cap
  })
  return period ? { period, text: spentText(period, spend[period].dollars, spend[period].cap ?? 0) } : null
}

function spentText(period: SpendPeriod, dollars: number, cap: number): string {
  return `${formatDollars(dollars)} of ${formatDollars(cap)} for models is spent ${periodWords[period]} (agent.budget_${period})`
}

/**
 * Counts the cost of a response in the transaction of its row. Reports once for each budget that 80
 * % and 100 % are spent: in the log of the incident with the response, and to receivers of notices.
 * At 100 % the message wakes people, because nothing is investigated until the period ends.
 */
export async function recordSpend(
  trx: Trx,
  incidentId: string,
  answer: { model: string; cost: AnswerCost },
): Promise<void> {
  const { dollars, isAssumed = false } = answer.cost
  const assumed = isAssumed ? dollars : 0
  await sql`
    insert into model_spend (day, model, type, answers, cost, assumed)
    select (${onceNow} at time zone 'UTC')::date, ${cleanse(answer.model.slice(0, 200))}, type, 1, ${dollars}, ${assumed}
    from incident where id = ${incidentId}
    on conflict (day, model, type) do update set answers = model_spend.answers + 1,
      cost = model_spend.cost + excluded.cost, assumed = model_spend.assumed + excluded.assumed`.execute(trx)
  if (dollars === 0) return
  const spend = await spendNow(trx)
  for (const period of ['day', 'month'] as const) {
    const { dollars: spent, cap } = spend[period]
    if (cap === null) continue
    const percent = noticePercents.findLast((each) => spent >= (cap * each) / 100)
    if (percent && (await isFirstNotice(trx, period, percent, cap)))
      await announce(trx, incidentId, { period, percent, spent, cap })
  }
}

async function isFirstNotice(trx: Trx, period: SpendPeriod, percent: number, cap: number): Promise<boolean> {
  const { rows } = await sql`
    insert into spend_notice (period, percent, cap)
    select to_char(${onceNow} at time zone 'UTC', ${period === 'day' ? 'YYYY-MM-DD' : 'YYYY-MM'}), ${percent}, ${cap}
    on conflict do nothing returning 1`.execute(trx)
  return rows.length > 0
}

type Notice = { period: SpendPeriod; percent: (typeof noticePercents)[number]; spent: number; cap: number }

async function announce(trx: Trx, incidentId: string, { period, percent, spent, cap }: Notice): Promise<void> {
  const consequence =
    percent < 100
      ? `at ${formatDollars(cap)} no more investigations start until the ${period} ends`
      : `investigations under way are escalated, and new incidents wait until the ${period} ends or agent.budget_${period} is raised`
  const text = `${spentText(period, spent, cap)}: ${consequence}`
  await append(trx, incidentId, null, {
    kind: 'noted',
    actor: systemActor,
    detail: text,
    metadata: { code: `budget_${period}_${percent}`, text },
  })
  const row = await lockIncident(trx, incidentId)
  if (row) await enqueueNotification(trx, row, 'notice', text, { page: percent >= 100 })
}

/** Sums the dollars spent on one incident so far, over all its attempts, from its log rows. */
export async function costOfIncident({ db }: Scope, incidentId: string): Promise<number> {
  const { rows } = await sql<{ dollars: number | null }>`
    select sum((metadata->'cost'->>'dollars')::float8) as dollars from incident_event
    where incident_id = ${incidentId} and kind = 'model_answered'`.execute(db)
  return rows[0]?.dollars ?? 0
}

/**
 * Reports the costs of the last days by model, incident type and day (newest first), and the costs
 * of today and this month with their budgets.
 */
export async function moneyOf({ db }: Scope, days: number): Promise<Usage['money']> {
  const spentBy = async (column: 'day' | 'model' | 'type', order: 'name desc' | 'dollars desc, name') => {
    const { rows } = await sql<SpentOn>`
      select ${sql.ref(column)}::text as name, sum(answers)::int as answers, sum(cost)::float8 as dollars,
        sum(assumed)::float8 as assumed
      from model_spend where day > (${onceNow} at time zone 'UTC')::date - ${days}::int
      group by 1 order by ${sql.raw(order)} limit 100`.execute(db)
    return rows
  }
  const [now, byModel, byType, byDay] = await Promise.all([
    spendNow(db),
    spentBy('model', 'dollars desc, name'),
    spentBy('type', 'dollars desc, name'),
    spentBy('day', 'name desc'),
  ])
  return { ...now, byModel, byType, byDay }
}
