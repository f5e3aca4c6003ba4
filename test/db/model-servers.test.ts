import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import { queueActivities } from '../../activities/queue.ts'
import { overdueIncidents } from '../../db/incidents/overdue.ts'
import { queuePlaceOf } from '../../db/incidents/queue-place.ts'
import {
  claimReading,
  keepAbilities,
  keepRefusedWindow,
  keepServed,
  keepShape,
  leaveAlone,
  modelProfile,
  modelsAway,
  type Served,
} from '../../db/models/profiles.ts'
import { keepSlot, leaveSlot, slotsNow, takeSlot, thinkingOf } from '../../db/models/slots.ts'
import { costOfAnswer, moneyOf, recordSpend, spendNow, spentCap } from '../../db/models/spend.ts'
import { systemScope } from '../../db/scope.ts'
import { putConfig } from '../../db/settings.ts'
import { plainShape, type RequestShape } from '../../domain/chat.ts'
import type { Severity } from '../../domain/incident.ts'
import { costOf, parsePrices, priceOf, shippedPrices } from '../../domain/price.ts'
import { describeAbilities } from '../../domain/status-words.ts'
import { claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'

describe('model servers', () => {
  describe('model profile', () => {
    const database = useDatabase()
    let models = 0
    const aModel = () => ({ server: 'http://models.example/v1', model: `m${++models}` })
    const learned: RequestShape = { ...plainShape, limit: 'max_completion_tokens', temperature: 'omitted' }
    const served: Served = {
      ...{ windowTokens: 8_192, source: 'max_model_len of /v1/models', identity: 'a' },
      ...{ cutsSilently: false, isProvisional: false, abilities: { grammar: 'yes', parallel: 'yes' } },
    }

    test('what one worker learned every worker knows, for a week', async () => {
      const key = aModel()
      await keepShape(database.db, key, learned)
      expect((await modelProfile(database.db, key)).shape).toEqual(learned)
      expect((await modelProfile(database.db, { ...key, model: 'another' })).shape).toEqual(plainShape)
      await moveClock(database.owner, '7 days 1 minute')
      expect((await modelProfile(database.db, key)).shape).toEqual(plainShape)
      await moveClock(database.owner, '0 days')
    })

    test('another model or server behind the same name is learned from the beginning', async () => {
      const key = aModel()
      await claimReading(database.db, key)
      await keepServed(database.db, key, served)
      await keepShape(database.db, key, learned)
      await keepRefusedWindow(database.db, key, 4_096)
      await keepServed(database.db, key, served)
      expect(await modelProfile(database.db, key)).toMatchObject({
        shape: learned,
        windowTokens: 4_096,
        windowSource: 'a refusal',
      })
      await keepServed(database.db, key, { ...served, identity: 'b' })
      expect(await modelProfile(database.db, key)).toMatchObject({ shape: plainShape, windowTokens: 8_192 })
    })

    test('what a server says it can do, what its answers show and what it refused are one profile', async () => {
      const key = aModel()
      await claimReading(database.db, key)
      await keepServed(database.db, key, served)
      await keepAbilities(database.db, key, { usage: 'yes', streaming: 'yes' })
      const known = { grammar: 'yes', parallel: 'yes', usage: 'yes', streaming: 'yes', tools: 'unknown' }
      expect((await modelProfile(database.db, key)).abilities).toMatchObject(known)
      await keepShape(database.db, key, { ...plainShape, calls: 'single', form: 'words', stream: 'off' })
      const { abilities } = await modelProfile(database.db, key)
      expect(abilities).toMatchObject({ parallel: 'no', schema: 'no', streaming: 'no', grammar: 'yes' })
      expect(describeAbilities(abilities)).toBe('grammar, counts tokens; not: several at once, JSON schema, streams')
      await keepServed(database.db, key, { ...served, identity: 'b', abilities: {} })
      expect(describeAbilities((await modelProfile(database.db, key)).abilities)).toBe('not known yet')
    })

    test('a model that did not answer is left alone for a while, from the last time on that a run found it so', async () => {
      const key = aModel()
      await leaveAlone(database.db, key, 60)
      await moveClock(database.owner, '30 seconds')
      await leaveAlone(database.db, key, 60)
      expect(await modelsAway(database.db)).toEqual([key])
      await moveClock(database.owner, '61 seconds')
      expect(await modelsAway(database.db)).toEqual([key])
      await moveClock(database.owner, '400 seconds')
      expect(await modelsAway(database.db)).toEqual([])
      await moveClock(database.owner, '0 days')
    })

    test('of many workers one asks the server, and again after ten minutes', async () => {
      const key = aModel()
      const claims = async () =>
        (await Promise.all(Array.from({ length: 8 }, () => claimReading(database.db, key)))).filter(Boolean)
      expect(await claims()).toHaveLength(1)
      await keepServed(database.db, key, { ...served, isProvisional: true })
      expect(await claims()).toHaveLength(0)
      await moveClock(database.owner, '16 seconds')
      expect(await claims()).toHaveLength(1)
      await keepServed(database.db, key, served)
      await moveClock(database.owner, '5 minutes')
      expect(await claims()).toHaveLength(0)
      await moveClock(database.owner, '11 minutes')
      expect(await claims()).toHaveLength(1)
      await moveClock(database.owner, '0 days')
    })

    test('a word of a shape that another version wrote is passed over', async () => {
      const key = aModel()
      await keepShape(database.db, key, { ...learned, limit: 'most_tokens' } as never)
      expect((await modelProfile(database.db, key)).shape).toEqual({ ...learned, limit: 'max_tokens' })
    })
  })

  describe('model slots', () => {
    const database = useDatabase()
    let servers = 0
    const aServer = () => `http://models-${++servers}.example/v1`
    const run = (server: string, name: string, severity: Severity = 'warning') => {
      const incidentId = `${server} ${name}`
      return { server, holder: `${incidentId}.1`, incidentId, severity }
    }

    test('forty workers that ask at once are never more than three at the model', async () => {
      const server = aServer()
      let now = 0
      let most = 0
      const asked = await Promise.all(
        Array.from({ length: 40 }, async (_, index) => {
          const who = run(server, `r${index}`)
          for (let tries = 1; ; tries += 1) {
            const slot = await takeSlot(database.db, who, 3, 'token')
            if (!slot.held) {
              await sleep(20 * slot.ahead)
              continue
            }
            now += 1
            most = Math.max(most, now)
            await database.db.selectNoFrom(({ lit }) => lit(1).as('one')).execute()
            now -= 1
            await leaveSlot(database.db, who.holder, 'token')
            return tries
          }
        }),
      )
      expect(most).toBe(3)
      expect(asked).toHaveLength(40)
      expect(await slotsNow(database.db)).toEqual([])
    })

    test('the more severe goes first, then who asked first, and each is told how many go before', async () => {
      const server = aServer()
      const [first, second, third, critical] = [
        ...['first', 'second', 'third'].map((name) => run(server, name)),
        run(server, 'critical', 'critical'),
      ]
      const take = async (who = first!) => await takeSlot(database.db, who, 1, who.holder)
      expect(await take()).toMatchObject({ held: true })
      expect(await take(second)).toEqual({ held: false, ahead: 1 })
      expect(await take(third)).toEqual({ held: false, ahead: 2 })
      expect(await take(critical)).toEqual({ held: false, ahead: 1 })
      expect(await thinkingOf(systemScope(database.db), third!.incidentId)).toMatchObject({
        state: 'waiting',
        ahead: 2,
      })
      expect(await thinkingOf(systemScope(database.db), first!.incidentId)).toMatchObject({ state: 'asked', ahead: 0 })
      expect(await slotsNow(database.db)).toEqual([{ server, held: 1, waiting: 3 }])
      await leaveSlot(database.db, first!.holder, first!.holder)
      // A free slot is the next one's, in any order of looking.
      expect(await take(second)).toEqual({ held: false, ahead: 1 })
      expect(await take(critical)).toMatchObject({ held: true })
      expect(await thinkingOf(systemScope(database.db), first!.incidentId)).toBeNull()
    })

    test('a worker that dies holds its slot for a minute, and its place in the line for a quarter of one', async () => {
      const server = aServer()
      const [dead, gone, alive] = [run(server, 'dead'), run(server, 'gone'), run(server, 'alive')]
      await takeSlot(database.db, dead, 1, 'a')
      await takeSlot(database.db, gone, 1, 'b')
      await moveClock(database.owner, '20 seconds')
      expect(await takeSlot(database.db, alive, 1, 'c')).toEqual({ held: false, ahead: 1 })
      await moveClock(database.owner, '61 seconds')
      expect(await takeSlot(database.db, alive, 1, 'c')).toMatchObject({ held: true })
      // Who was only slow finds out.
      expect(await keepSlot(database.db, dead.holder, 'a')).toBe(false)
      expect(await keepSlot(database.db, alive.holder, 'c')).toBe(true)
      await moveClock(database.owner, '0 days')
    })

    test('a holder that says that it lives keeps its slot for as long as it takes', async () => {
      const server = aServer()
      const [holder, other] = [run(server, 'holder'), run(server, 'other')]
      await takeSlot(database.db, holder, 1, 'a')
      for (const at of ['50 seconds', '100 seconds', '150 seconds']) {
        await moveClock(database.owner, at)
        expect(await keepSlot(database.db, holder.holder, 'a')).toBe(true)
        expect(await takeSlot(database.db, other, 1, 'b')).toMatchObject({ held: false })
      }
      await moveClock(database.owner, '0 days')
    })

    test("a run's next try takes over the slot of its earlier one, which can neither keep nor free it", async () => {
      const server = aServer()
      const who = run(server, 'again')
      await takeSlot(database.db, who, 1, 'earlier')
      expect(await takeSlot(database.db, who, 1, 'later')).toMatchObject({ held: true })
      expect(await keepSlot(database.db, who.holder, 'earlier')).toBe(false)
      await leaveSlot(database.db, who.holder, 'earlier')
      expect(await keepSlot(database.db, who.holder, 'later')).toBe(true)
    })

    test('one that leaves the line gives up its place and no slot', async () => {
      const server = aServer()
      const [holder, waiting] = [run(server, 'holder'), run(server, 'waiting')]
      await takeSlot(database.db, holder, 1, 'a')
      await takeSlot(database.db, waiting, 1, null)
      await leaveSlot(database.db, waiting.holder, null)
      await leaveSlot(database.db, holder.holder, null)
      expect((await slotsNow(database.db)).find((each) => each.server === server)).toMatchObject({
        held: 1,
        waiting: 0,
      })
    })

    test('a run that waits for the model for hours is no silent one', async () => {
      const incidentId = await claimedIncident(database.db)
      const server = aServer()
      await takeSlot(database.db, run(server, 'busy'), 1, 'a')
      await moveClock(database.owner, '3 hours')
      expect((await overdueIncidents(database.db)).map((each) => each.incidentId)).toEqual([incidentId])
      await takeSlot(database.db, run(server, 'busy'), 1, 'a')
      await takeSlot(database.db, { ...run(server, 'own'), incidentId }, 1, null)
      expect(await overdueIncidents(database.db)).toEqual([])
      await moveClock(database.owner, '0 days')
    })
  })
})

describe('spend', () => {
  describe('what a model costs', () => {
    const rules = (text: string) => {
      const parsed = parsePrices(text)
      if (!parsed.ok) throw new Error(parsed.reason)
      return parsed.rules
    }

    test.each([
      ['a model with a list price', ['gpt-4.1'], '', { in: 2, out: 8, isAssumed: false }],
      ['its dated name', ['claude-sonnet-5-20260601'], '', { in: 2, out: 10, isAssumed: false }],
      ['the name of a reseller before it', ['openai/gpt-5'], '', { in: 1.25, out: 10, isAssumed: false }],
      ['a price of the site goes first', ['gpt-4.1'], 'gpt-4.1 = 1/2', { in: 1, out: 2, isAssumed: false }],
      ['a model of the site that costs nothing', ['qwen3-32b'], 'qwen* = 0', { in: 0, out: 0, isAssumed: false }],
      [
        'the configured name decides over what the server says',
        ['big', 'qwen3'],
        'qwen* = 0; big = 9/9',
        { in: 9, out: 9, isAssumed: false },
      ],
      [
        'a model nobody priced counts as the dearest',
        ['mystery'],
        'gold = 20/300',
        { in: 20, out: 300, isAssumed: true },
      ],
    ])('%s', (_, models, own, price) => {
      expect(priceOf(models, rules(own))).toEqual(price)
    })

    test.each([
      'gpt',
      'gpt = 1',
      'gpt = -1/2',
      'gpt = 1/2/3',
      'a b = 1/2',
      'gpt = 1e9/2',
      'gpt = 999999/1',
      '= 1/2',
      `${'x = 1/1;'.repeat(101)}`,
    ])('a rule that cannot be read is refused by name: %s', (text) =>
      expect(parsePrices(text)).toMatchObject({ ok: false, reason: expect.any(String) }),
    )

    test('a million tokens each way cost what the rule says, and every shipped price names a public page', () => {
      expect(costOf({ promptTokens: 1_000_000, completionTokens: 1_000_000 }, { in: 0.4, out: 1.6 })).toBe(2)
      for (const { source, price } of shippedPrices) {
        expect(source).toMatch(/^https:\/\//)
        expect(price.out).toBeGreaterThanOrEqual(price.in)
      }
    })
  })

  describe('caps', () => {
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

    test('80 and 100 % of a day are said once, page at 100 alone, and then nothing is taken up until the next day', async () => {
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
        expect.stringMatching(/^\$8\.00 of \$10\.00 .* at \$10\.00 nothing more is investigated until the day ends/),
        expect.stringMatching(/^\$1[01]\.00 of \$10\.00 .* new incidents wait until the day ends/),
      ])
      const posts = await db
        .selectFrom('delivery')
        .select('notification')
        .where('incidentId', '=', incidentId)
        .execute()
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

    test('a cap that is raised lets the queue go on at once, and its own 80 % are said again', async () => {
      const { db } = database
      expect(await spentCap(db)).not.toBeNull()
      await set('agent.budget_day', '12')
      expect(await spentCap(db)).toBeNull()
      const incidentId = await claimedIncident(db)
      await answer(incidentId, 0.1)
      expect(await notices(incidentId)).toEqual([expect.stringContaining('of $12.00')])
    })

    test('a month has a cap too, and a model without a price counts against it at the dearest price', async () => {
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
  })
})
