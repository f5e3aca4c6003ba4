import { afterAll, afterEach, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { chooseModel, type ModelRoutes, restSeconds } from '../../activities/choose-model.ts'
import { contextActivities } from '../../activities/context.ts'
import { servedModels } from '../../activities/served-models.ts'
import { thinkActivities } from '../../activities/think.ts'
import { closeConnections } from '../../clients/http.ts'
import { createModelClient } from '../../clients/model.ts'
import { closeIncident } from '../../db/incidents/close-incident.ts'
import { eventsOf } from '../../db/log/events.ts'
import { modelProfile, restModel } from '../../db/models/profiles.ts'
import { countSlots, leaveSlot, type SlotHolder, takeSlot } from '../../db/models/slots.ts'
import { putConfig } from '../../db/settings.ts'
import { readPrompts } from '../../prompts/render.ts'
import { moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { patienceMs } from '../support/directory.ts'
import { type Answered, type RunningHost, runHost, type Spoken } from '../support/model-hosts/host.ts'
import { ollama, vllm } from '../support/model-hosts/local.ts'

describe('a run with a model and a fallback', () => {
  const database = useDatabase()
  const hosts: RunningHost[] = []
  afterEach(async () => {
    await Promise.all(hosts.splice(0).map((each) => each.stop()))
    await moveClock(database.owner, '0 days')
    // The next server may get a port that one of these had.
    await database.owner.deleteFrom('modelProfile').execute()
  })
  afterAll(closeConnections)
  const silent = { warn() {} }
  const look: Spoken = { content: 'I look.', calls: [{ name: 'list_hosts', arguments: {} }] }
  const down: Answered = { status: 503, body: { error: { message: 'no capacity' } } }

  async function host(speak: () => Spoken | Answered | Promise<Spoken>): Promise<RunningHost> {
    const running = await runHost(vllm({ window: 32_768 }), speak)
    hosts.push(running)
    return running
  }

  function models(big: RunningHost, small: RunningHost, bigTimeoutMs = patienceMs): ModelRoutes {
    const model = (name: string, { url }: RunningHost, fallbacks: string[], timeoutMs = patienceMs) => {
      const where = { baseUrl: url, apiKey: '' }
      const served = servedModels(database.db, where, silent)
      const client = createModelClient({ ...where, timeoutMs, memory: served.memory })
      return { name, model: `model-of-${name}`, fallbacks, client, served }
    }
    return [model('default', big, ['small'], bigTimeoutMs), model('small', small, [])]
  }

  /** A claimed run with its context; `think` is one try of a turn. */
  async function run(given: ModelRoutes, role: 'leader' | 'follower' = 'leader') {
    const { db } = database
    const incidentId = await openedIncident(db)
    const named = new Map(given.map((each) => [each.name, each]))
    const deps = { db, prompts: readPrompts(), protocol: 'native' as const, environment: {} }
    const { claim, assembleContext } = contextActivities({ ...deps, model: given[0].model, models: named })
    const settings = { temperature: 0, maxTokens: 500, contextTokens: null }
    const { think } = thinkActivities({ db, models: given, ...settings })
    const { awaitSlot } = thinkActivities({ db, models: given, ...settings, slots: { limit: 1 } })
    const workflowExecution = { workflowId: `investigate:${incidentId}:1`, runId: 'r' }
    const within = async <T>(attempt: number, work: () => Promise<T>) => {
      return (await new MockActivityEnvironment({ workflowExecution, attempt }).run(work)) as T
    }
    const waited = async (onBeat: () => void) => {
      const wait = new MockActivityEnvironment({ workflowExecution, startToCloseTimeoutMs: 90_000 })
      wait.once('heartbeat', onBeat)
      return await wait.run(() => awaitSlot({ incidentId, attempt: 1 }))
    }
    await within(1, async () => {
      await claim({ incidentId, attempt: 1, role, groupId: 'grp_test' })
      await assembleContext(incidentId, 1)
    })
    const tried = async (turn: number, attempt: number) =>
      await within(attempt, () => think({ incidentId, attempt: 1, turn })).then(
        ({ kind }) => kind,
        ({ code }: { code: string }) => code,
      )
    const rows = async () => (await eventsOf(db, incidentId)).filter(({ attempt }) => attempt === 1)
    const notes = async () => (await rows()).flatMap((row) => (row.kind === 'noted' ? [row.detail] : []))
    const answers = async () =>
      (await rows()).flatMap((row) =>
        row.kind === 'model_answered' ? [[row.metadata.route, row.metadata.server]] : [],
      )
    return { incidentId, tried, waited, rows, notes, answers }
  }

  test('after two attempts at a server that is down, the fallback is asked, and the row names the server that answered', async () => {
    const [big, small] = [await host(() => down), await host(() => look)]
    const { tried, notes, answers } = await run(models(big, small))
    expect([await tried(1, 1), await tried(1, 2)]).toEqual(['MODEL_UNAVAILABLE', 'MODEL_UNAVAILABLE'])
    expect(small.asked).toHaveLength(0)
    expect(await tried(1, 3)).toBe('calls')
    const why = 'the model cannot be reached or does not work'
    const fell = `Fell back from default (model-of-default) to small (model-of-small): ${why}`
    expect(await notes()).toEqual([fell])
    expect(await answers()).toEqual([['small', `${small.url}/v1`]])
    expect(small.asked[0]).toMatchObject({ model: 'model-of-small' })
  })

  test('a server whose account is empty is not asked again for long, and without a fallback a person gets the incident', async () => {
    const empty: Answered = { status: 402, body: { error: { message: 'Insufficient Balance' } } }
    const [big, small] = [await host(() => empty), await host(() => look)]
    const given = models(big, small)
    const { tried, notes, rows } = await run(given)
    expect([await tried(1, 1), await tried(1, 2)]).toEqual(['MODEL_UNPAID', 'calls'])
    expect(await notes()).toEqual([expect.stringMatching(/the account of the model is out of credit$/)])
    expect((await rows()).find(({ kind }) => kind === 'model_failed')?.detail).toContain('out of credit')
    await moveClock(database.owner, `${restSeconds * 10} seconds`)
    const other = await run(given)
    expect(await other.tried(1, 1)).toBe('calls')
    expect(big.asked).toHaveLength(1)
    const alone = await run([{ ...given[0], fallbacks: [] }])
    expect([await alone.tried(1, 1), await alone.tried(1, 2)]).toEqual(['MODEL_UNPAID', 'MODEL_UNPAID'])
  })

  test('another run does not ask that server for a minute, and asks it again afterwards', async () => {
    let isDown = true
    const [big, small] = [await host(() => (isDown ? down : look)), await host(() => look)]
    const given = models(big, small)
    const first = await run(given)
    for (const attempt of [1, 2, 3]) await first.tried(1, attempt)
    const asked = big.asked.length
    const other = await run(given)
    expect(await other.tried(1, 1)).toBe('calls')
    expect(big.asked).toHaveLength(asked)
    isDown = false
    await moveClock(database.owner, `${restSeconds + 1} seconds`)
    expect(await other.tried(2, 1)).toBe('calls')
    expect(big.asked).toHaveLength(asked + 1)
    expect(await other.notes()).toEqual([
      'Fell back from default (model-of-default) to small (model-of-small): the model did not answer another run just before',
      'Returned to default (model-of-default)',
    ])
    expect((await other.answers()).map(([route]) => route)).toEqual(['small', 'default'])
  })

  test('a run that waits for a server which fails meanwhile goes to the queue of the fallback', async () => {
    const given = models(await host(() => down), await host(() => look))
    const [busy, free] = given.map(({ served }) => served.server)
    const other = { server: busy!, holder: 'other.1', incidentId: 'other', severity: 'critical', isQuestion: false }
    await takeSlot(database.db, other as SlotHolder, 1, 'a')
    const { waited } = await run(given)
    const ready = await waited(() => void restModel(database.db, { server: busy!, model: given[0].model }, restSeconds))
    expect(ready).toEqual({ kind: 'ready' })
    expect(await countSlots(database.db)).toEqual(
      expect.arrayContaining([busy, free].map((server) => ({ server, held: 1, waiting: 0 }))),
    )
  })

  test('a run that was closed while it waited for the model takes no slot from the others', async () => {
    const given = models(await host(() => look), await host(() => look))
    const { server } = given[0].served
    const other = { server, holder: 'other.1', incidentId: 'other', severity: 'critical', isQuestion: false }
    await takeSlot(database.db, other as SlotHolder, 1, 'a')
    const { waited, incidentId } = await run([{ ...given[0], fallbacks: [] }])
    await waited(async () => {
      const closing = { status: 'cancelled' as const, reason: 'it is known' }
      const by = { actor: 'user:anna', stepKey: null }
      await database.db.transaction().execute((trx) => closeIncident(trx, incidentId, null, closing, by))
      await leaveSlot(database.db, other.holder, 'a')
    })
    expect((await countSlots(database.db)).filter((each) => each.server === server)).toEqual([])
  })

  test('a server that exceeds the time limit is not asked a second time', async () => {
    const [big, small] = [await host(() => new Promise<never>(() => {})), await host(() => look)]
    const { tried, notes } = await run(models(big, small, 300))
    expect([await tried(1, 1), await tried(1, 2)]).toEqual(['MODEL_TIMEOUT', 'calls'])
    expect(await notes()).toEqual([expect.stringMatching(/it took too long$/)])
  })

  test.each([
    ['a refused request', { status: 400, body: { error: { message: 'I do not like it' } } }, 'MODEL_BAD_REQUEST'],
    ['a refused key', { status: 401, body: {} }, 'MODEL_UNAUTHORISED'],
    ['a content filter', { content: 'no', finish: 'content_filter' }, 'MODEL_REFUSED'],
  ])('%s is no reason to ask another model', async (_name, said, code) => {
    const [big, small] = [await host(() => said), await host(() => look)]
    const { tried, notes } = await run(models(big, small))
    for (const attempt of [1, 2, 3]) expect(await tried(1, attempt)).toBe(code)
    expect(small.asked).toHaveLength(0)
    expect(await notes()).toEqual([])
  })

  test('settings assign a model to a role and a type, and a name that is not declared means the default model and is reported', async () => {
    const [big, small] = [await host(() => look), await host(() => look)]
    const set = async (key: string, value: string) =>
      await putConfig(database.db, { key, value, actor: 'test', reason: null, ifVersion: null })
    const opening = async (role: 'leader' | 'follower') => {
      const { rows } = await run(models(big, small), role)
      const row = (await rows()).find(({ kind }) => kind === 'context_assembled')
      return row?.kind === 'context_assembled' ? [row.metadata.model, row.metadata.route, row.detail] : []
    }
    expect((await opening('follower')).slice(0, 2)).toEqual(['model-of-default', undefined])
    await set('agent.model.follower', 'small')
    expect((await opening('follower')).slice(0, 2)).toEqual(['model-of-small', 'small'])
    expect((await opening('leader')).slice(0, 2)).toEqual(['model-of-default', undefined])
    await set('agent.model.type.disk_pressure', 'gone')
    const [model, route, detail] = await opening('follower')
    expect([model, route]).toEqual(['model-of-default', undefined])
    expect(detail).toContain('agent.model.type.disk_pressure names gone, which LLM_SERVERS_FILE does not declare')
  })

  describe('the protocol of each model is the declared one', () => {
    const called: Spoken = { content: '{"tool_call":{"name":"list_hosts","parameters":{}}}' }
    const protocolOfRun = async ({ rows }: Awaited<ReturnType<typeof run>>) => {
      const row = (await rows()).find(({ kind }) => kind === 'context_assembled')
      return row?.kind === 'context_assembled' ? [row.metadata.protocol, row.metadata.maxTurns] : []
    }

    test('a model with the JSON protocol gets words, one call per answer and four times the turns, while the default stays native', async () => {
      const [big, small] = [await host(() => look), await host(() => called)]
      const [first, second] = models(big, small)
      const given: ModelRoutes = [first, { ...second!, protocol: 'json' }]
      await database.owner.deleteFrom('platformConfig').execute()
      await putConfig(database.db, { ...follower, actor: 'test', reason: null, ifVersion: null })
      const [leader, following] = [await run(given), await run(given, 'follower')]
      expect([await protocolOfRun(leader), await protocolOfRun(following)]).toEqual([
        ['native', 10],
        ['json', 40],
      ])
      expect([await leader.tried(1, 1), await following.tried(1, 1)]).toEqual(['calls', 'calls'])
      expect([big.asked[0]!.tools !== undefined, small.asked[0]!.tools]).toEqual([true, undefined])
      expect(JSON.stringify(small.asked[0]!.messages)).toContain('## Tools')
      // A run with tools does not go on with a model that takes words alone.
      await leader.tried(2, 1)
      await big.stop()
      hosts.splice(hosts.indexOf(big), 1)
      const before = small.asked.length
      for (const attempt of [1, 2, 3]) expect(await leader.tried(3, attempt)).toBe('MODEL_UNAVAILABLE')
      expect(small.asked).toHaveLength(before)
      await database.owner.deleteFrom('platformConfig').execute()
    })

    test('auto is native until the server reports that it has no tools, and JSON for the runs after that', async () => {
      const server = await runHost(ollama({ parameter: 32_768, takesTools: false }), () => called)
      hosts.push(server)
      const [first] = models(server, server)
      const given: ModelRoutes = [{ ...first, model: 'qwen3:8b', fallbacks: [], protocol: 'auto' }]
      // Its list says that it does: the list of an older server says nothing.
      const unread: ModelRoutes = [
        { ...given[0], served: { ...given[0].served, profile: profileOf('qwen3:8b', server) } },
      ]
      const refused = await run(unread)
      expect([await protocolOfRun(refused), await refused.tried(1, 1)]).toEqual([['native', 10], 'MODEL_BAD_REQUEST'])
      const next = await run(unread)
      expect([await protocolOfRun(next), await next.tried(1, 1)]).toEqual([['json', 40], 'calls'])
    })
  })

  const follower = { key: 'agent.model.follower', value: 'small' }
  /** What rows hold, without asking the server. */
  const profileOf =
    (model: string, { url }: RunningHost) =>
    () =>
      modelProfile(database.db, { server: `${url}/v1`, model })
})

describe('the choice of a model', () => {
  const choose = (failed: Record<string, number>, away: string[] = []) =>
    chooseModel<{ name: string }>(
      [{ name: 'a' }, { name: 'b' }, { name: 'c' }],
      new Map(Object.entries(failed).map(([name, weight]) => [name, { code: 'unavailable', weight }])),
      ({ name }) => away.includes(name),
    ).name

  test('follows the route, skips models that rest, and starts again if all have failed', () => {
    expect(choose({})).toBe('a')
    expect(choose({ a: 1 })).toBe('a')
    expect(choose({ a: 2 })).toBe('b')
    expect(choose({ a: 2 }, ['b'])).toBe('c')
    expect(choose({}, ['a', 'b', 'c'])).toBe('a')
    expect(choose({ a: 2 }, ['a', 'b', 'c'])).toBe('b')
    expect(choose({ a: 2, b: 2, c: 2 })).toBe('a')
    expect(choose({ a: 3, b: 2, c: 2 })).toBe('b')
  })
})
