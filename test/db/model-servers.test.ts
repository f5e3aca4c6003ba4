import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import {
  claimReading,
  keepAbilities,
  keepRefusedWindow,
  keepServed,
  keepShape,
  keepSlot,
  leaveAlone,
  leaveSlot,
  modelProfile,
  modelsAway,
  type Served,
  slotsNow,
  takeSlot,
  thinkingOf,
} from '../../db/model-servers.ts'
import { overdueIncidents } from '../../db/overdue.ts'
import { systemScope } from '../../db/scope.ts'
import { plainShape, type RequestShape } from '../../domain/chat.ts'
import type { Severity } from '../../domain/incident.ts'
import { describeAbilities } from '../../domain/status-words.ts'
import { claimedIncident, moveClock, useDatabase } from '../support/database.ts'

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
    await moveClock(database.owner, '50 seconds')
    await leaveAlone(database.db, key, 60)
    expect(await modelsAway(database.db)).toEqual([key])
    await moveClock(database.owner, '100 seconds')
    expect(await modelsAway(database.db)).toEqual([key])
    await moveClock(database.owner, '111 seconds')
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
    expect(await thinkingOf(systemScope(database.db), third!.incidentId)).toMatchObject({ state: 'waiting', ahead: 2 })
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
    await moveClock(database.owner, '50 seconds')
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
    expect((await slotsNow(database.db)).find((each) => each.server === server)).toMatchObject({ held: 1, waiting: 0 })
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
