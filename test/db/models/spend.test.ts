import { expect, test } from '@jest/globals'
import { queueActivities } from '../../../activities/queue.ts'
import { queuePlaceOf } from '../../../db/incidents/queue-place.ts'
import { costOfAnswer, moneyOf, recordSpend, spendNow, spentCap } from '../../../db/models/spend.ts'
import { systemScope } from '../../../db/scope.ts'
import { putConfig } from '../../../db/settings.ts'
import { shippedPrices } from '../../../domain/price.ts'
import { claimedIncident, moveClock, openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()
const set = (key: string, value: string) =>
  putConfig(database.db, { key, value, actor: 'test', reason: null, ifVersion: null })
/** An answer of a thousand dollars or a part of it, as a run writes it. */
const answer = async (incidentId: string, dollars: number) => {
  const cost = await costOfAnswer(database.db, ['qwen3'], {
    promptTokens: dollars * 1_000_000,
    completionTokens: 0,
  })
  await database.db.transaction().execute((trx) => recordSpend(trx, incidentId, { model: 'qwen3', cost }))
}
const notices = async (incidentId: string) => {
  const rows = await database.db
    .selectFrom('incidentEvent')
    .select(['detail'])
    .where('incidentId', '=', incidentId)
    .where('kind', '=', 'noted')
    .orderBy('seq')
    .execute()
  return rows.map(({ detail }) => detail)
}

test("80 and 100 % of a day's budget are reported once, page at 100 alone, and then no run starts until the next day", async () => {
  const { db, owner } = database
  await set('agent.prices', 'qwen* = 1/1')
  await set('agent.budget_day', '10')
  await set('webhook.escalated.url', 'http://127.0.0.1:9/hook')
  const incidentId = await claimedIncident(db)
  await answer(incidentId, 7)
  expect(await notices(incidentId)).toEqual([])
  await answer(incidentId, 1)
  await answer(incidentId, 1)
  expect(await spentCap(db)).toBeNull()
  await Promise.all([answer(incidentId, 1), answer(incidentId, 1)])
  expect(await notices(incidentId)).toEqual([
    expect.stringMatching(/^\$8\.00 of \$10\.00 .* at \$10\.00 no more investigations start until the day ends/),
    expect.stringMatching(/^\$1[01]\.00 of \$10\.00 .* new incidents wait until the day ends/),
  ])
  const posts = await db.selectFrom('delivery').select('notification').where('incidentId', '=', incidentId).execute()
  const pages = posts.map(({ notification }) => notification as { trigger: string; page: boolean })
  expect(pages.filter(({ trigger }) => trigger === 'notice').map(({ page }) => page)).toEqual([false, true])

  expect(await spentCap(db)).toMatchObject({ period: 'day' })
  const waiting = await openedIncident(db, { labels: { alertname: 'disk_pressure', node: 'n-1' } })
  const deps = { db, client: null as never, taskQueue: 'q', environment: {} }
  expect(await queueActivities(deps).stampQueue()).toEqual([])
  expect(await queuePlaceOf(systemScope(db), waiting)).toMatchObject({
    why: 'budget',
    text: expect.stringContaining('agent.budget_day'),
  })
  await moveClock(owner, '1 day')
  expect(await spentCap(db)).toBeNull()
  expect(await queueActivities(deps).stampQueue()).toEqual(['disk_pressure'])
  await moveClock(owner, '0 s')
})

test('a raised limit lets the queue continue at once, and its own 80 % are reported again', async () => {
  const { db } = database
  expect(await spentCap(db)).not.toBeNull()
  await set('agent.budget_day', '12')
  expect(await spentCap(db)).toBeNull()
  const incidentId = await claimedIncident(db)
  await answer(incidentId, 0.1)
  expect(await notices(incidentId)).toEqual([expect.stringContaining('of $12.00')])
})

test('a month has a limit too, and a model without a price counts at the highest price', async () => {
  const { db } = database
  await set('agent.budget_month', '100000')
  await set('agent.prices', '')
  const cost = await costOfAnswer(db, ['mystery'], { promptTokens: 1_000_000, completionTokens: 0 })
  expect(cost).toMatchObject({ isAssumed: true, dollars: Math.max(...shippedPrices.map(({ price }) => price.in)) })
  const before = (await spendNow(db)).month.dollars
  const incidentId = await claimedIncident(db)
  await db.transaction().execute((trx) => recordSpend(trx, incidentId, { model: 'mystery', cost }))
  expect((await spendNow(db)).month).toEqual({ dollars: before + cost.dollars, cap: 100_000 })
  const { byModel } = await moneyOf(systemScope(db), 7)
  expect(byModel).toContainEqual({ name: 'mystery', answers: 1, dollars: cost.dollars, assumed: cost.dollars })
})
