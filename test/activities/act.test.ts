import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { type Answered, type AskDeps, askModel } from '../../activities/ask-model.ts'
import { expirySecondsOf } from '../../activities/ask-people.ts'
import { contextActivities } from '../../activities/context.ts'
import { withHeartbeat } from '../../activities/heartbeat.ts'
import { waitForSlot, withSlot } from '../../activities/model-slots.ts'
import { rule } from '../../activities/rule.ts'
import { send } from '../../activities/send.ts'
import { servedModels } from '../../activities/served-models.ts'
import { closeByReading, lookOnce, verifyWrite } from '../../activities/verify.ts'
import { closeConnections, HttpError } from '../../clients/http.ts'
import { createModelClient } from '../../clients/model.ts'
import { waitOf } from '../../db/incidents/waits.ts'
import { addDevice } from '../../db/inventory/devices.ts'
import { declareResources } from '../../db/inventory/registry.ts'
import { append } from '../../db/log/append.ts'
import { bodyText, storeBody } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import { listenLive, tellLive } from '../../db/log/live.ts'
import { slotsNow, takeSlot } from '../../db/models/slots.ts'
import { putConfig, readSettings } from '../../db/settings.ts'
import type { LiveAnswer } from '../../domain/chat.ts'
import { deviceTerms } from '../../domain/device.ts'
import { failedEnvelope } from '../../domain/envelope.ts'
import { agentActor, type EventMetadata, type IncidentEvent } from '../../domain/event.ts'
import { importSource, type ResourceRef } from '../../domain/registry.ts'
import { stepKey } from '../../domain/step-key.ts'
import type { CoreAnswer, CorePort } from '../../domain/tool.ts'
import { readPrompts } from '../../prompts/render.ts'
import { fold } from '../../safety/fold.ts'
import { approvedBySomebody } from '../api/announced.ts'
import { claimedIncident, openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { type RunningHost, runHost, type Spoken } from '../support/model-hosts/host.ts'
import { vllm } from '../support/model-hosts/local.ts'

describe('act', () => {
  describe('rule', () => {
    const database = useDatabase()

    test('a try that is slower than another judges nothing, and sends only after it has asked what became of the call', async () => {
      const { db } = database
      const incidentId = await claimedIncident(db)
      const place = { incidentId, attempt: 1, turn: 1, call: 0, approvalId: null }
      const call = { id: 'c1_0', tool: 'find_resource', arguments: { text: 'db' }, problem: null }
      await db.transaction().execute((trx) =>
        append(trx, incidentId, 1, {
          kind: 'model_answered',
          actor: agentActor,
          turn: 1,
          stepKey: stepKey(place, 1, 'model_answered', 0),
          detail: '',
          metadata: {
            ...{ content: '', body: null, calls: [call], final: null, problem: null, model: 'm', finishReason: 'stop' },
            ...{ usage: { promptTokens: 1, completionTokens: 1 }, durationMs: 1 },
          },
        }),
      )
      const judge = () =>
        db
          .transaction()
          .execute((trx) =>
            rule({ environment: {} }, trx, place, { call: { ...call, edit: null }, prepared: null, later: null }),
          )
      const first = await judge()
      const late = await judge()
      expect([first, late]).toMatchObject([
        { kind: 'run', again: false },
        { kind: 'run', again: true },
      ])
      const kinds = (await eventsOf(db, incidentId)).map(({ kind }) => kind)
      expect(kinds.filter((kind) => kind === 'call_judged' || kind === 'tool_started')).toEqual([
        'call_judged',
        'tool_started',
      ])
    })
  })

  describe('asked together', () => {
    const database = useDatabase()
    const kill = { pid: 4711, start_time: '100', signal: 'TERM' }
    const node = (id: string): ResourceRef => ({ kind: 'node', id })

    /** An answer with a kill on each of these nodes, of which these were looked up. */
    async function proposed(on: string[], known: string[]) {
      const incidentId = await claimedIncident(database.db)
      const base = { incidentId, attempt: 1, turn: 2 }
      const calls = on.map((id, index) => ({
        id: `c2_${index}`,
        tool: 'proc_kill',
        arguments: { on: id, ...kill, reason: 'it eats the CPU' },
        problem: null,
      }))
      await database.db.transaction().execute(async (trx) => {
        for (const [index, id] of known.entries())
          await append(trx, incidentId, 1, {
            ...{ kind: 'tool_finished', actor: agentActor, turn: 1, detail: '' },
            stepKey: stepKey(base, 1, 'tool_finished', index),
            metadata: {
              ...{ callId: `c1_${index}`, tool: 'find_resource', arguments: { text: id }, effect: 'resolve' },
              ...{ targets: [], outcome: 'done', body: null, durationMs: 1, result: { ok: true, data: {}, meta: {} } },
              discovered: [{ ...node(id), name: id, aliases: [] }],
            },
          })
        await append(trx, incidentId, 1, {
          ...{ kind: 'model_answered', actor: agentActor, turn: 2, detail: '' },
          stepKey: stepKey(base, 2, 'model_answered', 0),
          metadata: {
            ...{ content: '', body: null, calls, final: null, problem: null, model: 'm', finishReason: 'stop' },
            ...{ usage: { promptTokens: 1, completionTokens: 1 }, durationMs: 1 },
          },
        })
      })
      const later = (index: number) => {
        const dryRun = { possible: false, summary: `end a process on ${on[index]}`, details: {} }
        const identity = { on: on[index], ...kill }
        const preparation = { targets: [node(on[index] ?? '')], identity, stateFingerprint: 'f', dryRun }
        return {
          place: { ...base, call: index, approvalId: null as string | null },
          call: { ...calls[index]!, edit: null },
          prepared: { ok: true as const, preparation },
        }
      }
      const judge = (index: number, approvalId: string | null = null) =>
        database.db.transaction().execute((trx) => {
          const { place, call, prepared } = later(index)
          const behind = on.map((_, each) => each).filter((each) => each > index)
          return rule({ environment: {} }, trx, { ...place, approvalId }, { call, prepared, later: behind.map(later) })
        })
      const approvals = () =>
        database.db
          .selectFrom('approval')
          .select(['id', 'callId', 'status', 'askedWith', 'announced'])
          .where('incidentId', '=', incidentId)
          .orderBy('requestedAt')
          .orderBy('callId')
          .execute()
      return { incidentId, base, judge, approvals }
    }

    /** What the first call came to: it ran and failed. */
    async function fail({ incidentId, base }: Awaited<ReturnType<typeof proposed>>) {
      const metadata = { callId: 'c2_0', tool: 'proc_kill', arguments: {}, effect: 'write' as const, targets: [] }
      const result = failedEnvelope('DENIED', 'there is no such process')
      await database.db.transaction().execute((trx) =>
        append(trx, incidentId, 1, {
          ...{ kind: 'tool_finished', actor: agentActor, turn: 2, detail: '' },
          stepKey: stepKey(base, 2, 'tool_finished', 0),
          metadata: { ...metadata, outcome: 'failed', result, body: null, discovered: [], durationMs: 1 },
        }),
      )
    }

    test('what touches the same thing, and what would be refused now, is not asked about before its turn', async () => {
      const answer = await proposed(['web-1', 'web-1', 'web-2', 'web-unknown'], ['web-1', 'web-2'])
      expect(await answer.judge(0)).toMatchObject({ kind: 'ask' })
      const asked = await answer.approvals()
      expect(asked.map(({ callId, announced }) => [callId, announced])).toEqual([
        ['c2_0', true],
        ['c2_2', false],
      ])
      expect(new Set(asked.map(({ askedWith }) => askedWith))).toEqual(new Set([asked[0]?.id]))
      const judged = (await eventsOf(database.db, answer.incidentId)).filter(({ kind }) => kind === 'call_judged')
      expect(judged).toHaveLength(2)
    })

    test('an answer that holds one question has no card of several', async () => {
      const answer = await proposed(['db-1', 'db-unknown'], ['db-1'])
      await answer.judge(0)
      expect(await answer.approvals()).toMatchObject([{ callId: 'c2_0', askedWith: null, announced: true }])
    })

    test('where the first call fails, the yes to the second is taken back and asked again', async () => {
      const answer = await proposed(['api-1', 'api-2'], ['api-1', 'api-2'])
      await answer.judge(0)
      const [, second] = await answer.approvals()
      await approvedBySomebody(database.db, second?.id ?? '')
      await fail(answer)
      expect(await answer.judge(1)).toMatchObject({ kind: 'ask' })
      const [, , again] = await answer.approvals()
      expect((await answer.approvals()).map(({ status }) => status)).toEqual(['pending', 'withdrawn', 'pending'])
      expect(again).toMatchObject({ callId: 'c2_1', announced: true })
      // Found again after a crash, that question stands: people knew of the failure when it was asked.
      expect(await answer.judge(1)).toMatchObject({ kind: 'ask', approvalId: again?.id })
    })

    test('a decision that came before the turn of its call is read when it comes, a denial too', async () => {
      const answer = await proposed(['mail-1', 'mail-2'], ['mail-1', 'mail-2'])
      await answer.judge(0)
      const [, second] = await answer.approvals()
      await database.db
        .updateTable('approval')
        .set({ status: 'denied' })
        .where('id', '=', second?.id ?? '')
        .execute()
      expect(await answer.judge(1)).toEqual({ kind: 'ask', approvalId: second?.id, expiresInMs: 250 })
      expect(await answer.approvals()).toHaveLength(2)
    })
  })

  describe('send', () => {
    const database = useDatabase()

    /** A read that was begun, against a core API that is away for this many tries. */
    async function read(triesAway: number, patienceMs: number) {
      const incidentId = await claimedIncident(database.db)
      const place = { incidentId, attempt: 1, turn: 1, call: 0 }
      const { event } = await database.db.transaction().execute((trx) =>
        append(trx, incidentId, 1, {
          kind: 'tool_started',
          actor: 'agent:incident-investigator',
          turn: 1,
          stepKey: `${incidentId}.1:1:tool_started:0`,
          detail: 'get_shard',
          metadata: {
            callId: 'c1_0',
            tool: 'get_shard',
            arguments: { id: 's-1' },
            effect: 'read',
            targets: [],
            approvalId: null,
          },
        } as never),
      )
      let tries = 0
      const away = async (): Promise<never> => {
        tries += 1
        if (tries > triesAway)
          return { ok: false, status: 404, problem: { title: 'Not found', detail: 'no such shard' } } as never
        throw new HttpError('connect', 'nobody listens', true)
      }
      const core: CorePort = { get: away, post: away }
      const beats: unknown[] = []
      const environment = new MockActivityEnvironment()
      environment.on('heartbeat', (details) => beats.push(details))
      const signal = new AbortController().signal
      const finished = (await environment.run(() =>
        send({ db: database.db, core, patienceMs }, place, event as IncidentEvent<'tool_started'>, {
          again: false,
          signal,
        }),
      )) as IncidentEvent<'tool_finished'>
      return { incidentId, tries, beats, result: finished.metadata.result }
    }

    test('a core API that is away for five tries is waited for, and its answer is what the model reads', async () => {
      const { incidentId, tries, beats, result } = await read(5, 60_000)
      expect([tries, result.error?.code]).toEqual([6, 'NOT_FOUND'])
      expect(beats).toContainEqual(expect.objectContaining({ waitsFor: 'core_api' }))
      // The note goes by itself: no answer waits for it.
      await eventually('the note to go', async () => (await waitOf(database.db, incidentId)) === null)
    })

    test('only when patience is over does the silence become an answer', async () => {
      const { tries, result } = await read(Number.POSITIVE_INFINITY, 3_000)
      expect(tries).toBeGreaterThan(1)
      expect(JSON.stringify(result)).toContain('UNANSWERED')
    })
  })

  describe('verify', () => {
    const database = useDatabase()
    const node = { kind: 'node', id: 'node-osl-1' } as const
    const signal = new AbortController().signal
    const unreadable: CoreAnswer = { ok: false, status: 503, problem: { title: 'no', detail: 'no answer' } }

    /** The core API, answering every look alike, and what it was asked. */
    function core(answer: CoreAnswer): CorePort & { asked: string[] } {
      const asked: string[] = []
      const get = async (path: string) => {
        asked.push(path)
        return answer
      }
      return { asked, get, post: async () => unreadable }
    }

    const seen = (data: unknown): CoreAnswer => ({ ok: true, status: 200, data })
    const healthy = (status: string, more = {}) =>
      seen({ items: [{ id: 'n', hostname: 'n', ip: '1', shard: 's', status, ...more }] })

    let turns = 0
    /** A write as far as its run has come: started, and answered with done or failed. */
    async function written(tool: string, args: Record<string, unknown>, outcome: 'done' | 'failed' | 'indeterminate') {
      const incidentId = await claimedIncident(database.db)
      turns += 1
      const place = { incidentId, attempt: 1, turn: turns, call: 0 }
      const callId = `c${turns}_0`
      const key = `${incidentId}.1:${turns}:tool_started:0`
      const about = { callId, tool, arguments: args, effect: 'write' as const, targets: [node] }
      await database.db.transaction().execute((trx) =>
        append(trx, incidentId, 1, {
          ...{ kind: 'tool_started', actor: agentActor, turn: turns, detail: '', stepKey: key },
          metadata: { ...about, risk: 'low', actionDigest: 'd', approvalId: null },
        }),
      )
      await note(incidentId, key.replace('started', 'finished'), {
        ...{ ...about, outcome, discovered: [] },
        ...{ result: outcome === 'done' ? { ok: true, meta: {} } : failedEnvelope('X', 'the platform said no') },
      })
      return { place, key }
    }

    async function note(incidentId: string, stepKey: string, metadata: object) {
      return await database.db.transaction().execute(
        async (trx) =>
          (
            await append(trx, incidentId, 1, {
              ...{ kind: 'tool_finished', actor: agentActor, detail: '', stepKey },
              metadata: { body: null, durationMs: 1, ...metadata } as never,
            })
          ).event as IncidentEvent<'tool_finished'>,
      )
    }

    async function told(incidentId: string) {
      const events = await eventsOf(database.db, incidentId)
      const row = events.findLast((event) => event.kind === 'verification') as IncidentEvent<'verification'>
      return { row, ...row.metadata, state: fold(events, 1) }
    }

    const converge = (outcome: 'done' | 'failed' | 'indeterminate') => written('converge_shard', { id: 's' }, outcome)

    test('what a write promised is held when code has looked', async () => {
      const { place } = await converge('done')
      await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
      const { outcome, postcondition, row, state } = await told(place.incidentId)
      expect([outcome, postcondition, row.action]).toEqual([
        'held',
        'every node of the shard is nominal',
        'fix_succeeded',
      ])
      expect(state.writes).toMatchObject([{ verified: 'held', verifiedSeq: row.seq }])
    })

    test('a write that failed does not hold, though the state is as it was wished for', async () => {
      const { place } = await converge('failed')
      await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
      const { outcome, observed, row } = await told(place.incidentId)
      expect([outcome, row.action]).toEqual(['not_held', 'fix_failed'])
      expect(observed).toBe('it failed (the platform said no); all 1 nodes of s are nominal')
    })

    test('of a write of which nobody can tell what became the state tells', async () => {
      const { place } = await converge('indeterminate')
      await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
      expect((await told(place.incidentId)).outcome).toBe('held')
    })

    test('a write that promised nothing is unproven: that closes it, and is no success', async () => {
      const { place } = await written('exec', { on: node.id, argv: ['touch', 'x'] }, 'done')
      const looked = core(seen({ holds: null, observed: 'it ran' }))
      await verifyWrite({ db: database.db, core: looked }, place, signal)
      const { outcome, postcondition, row, state } = await told(place.incidentId)
      expect([outcome, postcondition, row.action]).toEqual(['unproven', '', 'attempted_fix'])
      expect(state.open).toBeNull()
      expect(state.writes).toMatchObject([{ verified: 'unproven', verifiedSeq: row.seq }])
      expect(looked.asked).toHaveLength(1)
    })

    test.each<[string, CoreAnswer]>([
      ['does not answer', unreadable],
      ['answers with what it knew before', healthy('unknown', { stale: true })],
    ])('while the platform %s nothing is known of it, which is not that it does not hold', async (_, answer) => {
      const { place } = await converge('done')
      await lookOnce({ db: database.db, core: core(answer) }, place)
      const { outcome, row, state } = await told(place.incidentId)
      expect([outcome, row.action, state.open?.tool]).toEqual(['open', 'attempted_fix', 'converge_shard'])
    })

    test('a later look at the target closes an open write on a device, asked for by the key of that write', async () => {
      const { place, key } = await written(
        'proc_kill',
        { on: node.id, pid: 7, start_time: '1', signal: 'TERM' },
        'done',
      )
      const { incidentId } = place
      await lookOnce({ db: database.db, core: core(unreadable) }, place)
      expect((await told(incidentId)).outcome).toBe('open')
      const read = await note(incidentId, `${incidentId}.1:99:tool_finished:0`, {
        ...{ callId: 'c99_0', tool: 'get_node', arguments: {}, effect: 'read', outcome: 'done', discovered: [] },
        ...{ targets: [node], result: { ok: true, meta: {} } },
      })
      const looked = core(seen({ holds: true, observed: 'the process is gone' }))
      await closeByReading({ db: database.db, core: looked }, { ...place, turn: 99 }, read)
      expect(looked.asked).toEqual([expect.stringContaining(encodeURIComponent(key))])
      expect((await told(incidentId)).outcome).toBe('held')
    })
  })

  describe('ask people', () => {
    const database = useDatabase()
    const expiry = async (tool: string) => expirySecondsOf(await readSettings(database.db), tool)

    test('people have an hour, and half of it for a command on a device, whose rehearsal ages', async () => {
      expect(await expiry('execute_migration')).toBe(3_600)
      expect(await expiry('shell_eval')).toBe(1_800)
    })

    test('a setting counts whatever the dry run says, shorter or longer', async () => {
      for (const [seconds, version] of [
        [7_200, null],
        [60, 1],
      ] as const) {
        await putConfig(database.db, {
          key: 'approval.expiry.shell_eval',
          value: String(seconds),
          actor: 'user:anna',
          reason: null,
          ifVersion: version,
        })
        expect(await expiry('shell_eval')).toBe(seconds)
      }
    })
  })
})

describe('think', () => {
  describe('ask model', () => {
    const database = useDatabase()
    const silent = { warn() {} }
    let host: RunningHost
    const beats: Record<string, unknown>[] = []
    afterEach(async () => await host?.stop())
    afterAll(closeConnections)

    const body = async (text: string) =>
      await database.db.transaction().execute(async (trx) => await storeBody(trx, text))

    /** An attempt that has read twenty pages of logs. */
    async function readingRun(): Promise<{ opening: EventMetadata['context_assembled']; events: IncidentEvent[] }> {
      const opening = {
        ...{ prompt: await body('You investigate.'), tools: await body('[]'), context: await body('{"hint":null}') },
        ...{
          protocol: 'native',
          model: 'qwen3',
          parts: {},
          hintFrom: null,
          maxTurns: 30,
          deadline: '',
          tokenBudget: 1e6,
        },
      } as EventMetadata['context_assembled']
      const events = Array.from({ length: 20 }, (_, index): unknown[] => {
        const callId = `c${index}_0`
        const meta = { ok: true, data: 'line of a log '.repeat(300), meta: {} }
        return [
          {
            ...{ kind: 'model_answered', attempt: 1, seq: index * 2 },
            metadata: {
              content: '',
              calls: [{ id: callId, tool: 'read_log', arguments: {}, problem: null }],
              usage: { promptTokens: 1, completionTokens: 1 },
            },
          },
          {
            ...{ kind: 'tool_finished', attempt: 1, seq: index * 2 + 1, at: '2026-11-21T02:00:00Z' },
            metadata: { callId, tool: 'read_log', result: meta, body: null },
          },
        ]
      }).flat() as IncidentEvent[]
      return { opening, events }
    }

    async function asking(speak: () => Spoken | Promise<Spoken>, window: number) {
      host = await runHost(vllm({ window, parsesReasoning: true }), speak)
      const where = { baseUrl: host.url, apiKey: '' }
      const served = servedModels(database.db, where, silent)
      const deps: AskDeps = {
        ...{ db: database.db, temperature: 0, maxTokens: 512, contextTokens: 100_000, served },
        model: createModelClient({ ...where, memory: served.memory }),
      }
      const incidentId = await claimedIncident(database.db)
      const { opening, events } = await readingRun()
      const turn = { incidentId, attempt: 1, turn: 21 }
      const { signal } = new AbortController()
      const ask = async () => {
        const environment = new MockActivityEnvironment({ heartbeatTimeoutMs: 1_000 })
        environment.on('heartbeat', (details?: Record<string, unknown>) => details && beats.push(details))
        return (await environment.run(() =>
          withHeartbeat(() => askModel(deps, turn, events, opening, signal)),
        )) as Answered
      }
      return { ask, served }
    }

    test('a window that was set too large is learned from the refusal: the same turn goes on with less of the conversation', async () => {
      const { ask, served } = await asking(() => ({ content: 'ok' }), 8_192)
      expect((await ask()).answer.content).toBe('ok')
      expect(host.asked).toHaveLength(2)
      expect(await served.profile('qwen3')).toMatchObject({ windowTokens: 8_192 })
      // What is left out is said, and the newest results are whole.
      expect(JSON.stringify(host.asked.at(-1))).toContain('cut to fit')
      expect(JSON.stringify(host.asked.at(-1)?.messages.at(-1))).toContain('line of a log')
      // The first message states the limits, the last one what is left of them.
      expect(JSON.stringify(host.asked.at(-1)?.messages)).toContain('You have 30 turns of up to 8 calls each')
      expect(JSON.stringify(host.asked.at(-1)?.messages.at(-1))).toMatch(/turn \d+ of 30, \d+ tokens left/)
    })

    test('while an answer is written its end is told, without secrets and reasoning; the heartbeat holds numbers alone', async () => {
      const { ask } = await asking(async () => {
        await sleep(700)
        return {
          content: `the key is AKIAIOSFODNN7EXAMPLE and the replica ${'lags '.repeat(40)}`,
          reasoning: 'SECRET PLANS',
        }
      }, 32_768)
      host.host.pauseMs = 20
      const heard: LiveAnswer[] = []
      const ends = new AbortController()
      const listening = listenLive(database.db, (said) => void heard.push(said), ends.signal)
      const nothing = { incidentId: 'inc_none', attempt: 1, turn: 1, maxTurns: 1, model: 'x', state: 'asked' as const }
      await eventually('somebody to listen', async () => {
        await tellLive(database.db, { ...nothing, seconds: 0, tokens: 0, isCounted: false, tail: '' })
        return heard.length > 0
      })
      heard.length = 0
      await ask()
      await eventually('its end is told', async () => heard.at(-1)?.state === 'ended')
      ends.abort()
      await listening
      expect(heard.map(({ state }) => state)).toEqual(expect.arrayContaining(['asked', 'writing', 'ended']))
      const last = heard.findLast(({ state }) => state === 'writing')!
      expect(last).toMatchObject({ turn: 21, maxTurns: 30, model: 'qwen3', isCounted: false })
      expect(last.tokens).toBeGreaterThan(10)
      expect(last.tail).toContain('lags')
      expect(JSON.stringify(heard)).not.toMatch(/AKIAIOSFODNN7EXAMPLE|SECRET PLANS/)
      expect(beats.length).toBeGreaterThan(0)
      for (const beat of beats) expect(Object.values(beat).every((each) => typeof each === 'number')).toBe(true)
    })

    test('of a try that lost its slot nothing is used, and it ends at once', async () => {
      const incidentId = await claimedIncident(database.db)
      const run = { incidentId, attempt: 1 }
      const slots = { server: 'http://lost.example/v1', limit: 1, keepEveryMs: 20 }
      const asked = withSlot(database.db, slots, run, async (_waitedMs, lost) => {
        const who = { server: slots.server, holder: `${incidentId}.1`, incidentId, severity: 'warning' as const }
        await takeSlot(database.db, who, 1, 'of the next try')
        await sleep(60_000, undefined, { signal: lost })
      })
      await expect(asked).rejects.toMatchObject({ code: 'MODEL_SLOT_LOST' })
      expect((await slotsNow(database.db)).find(({ server }) => server === slots.server)).toMatchObject({ held: 1 })
    })

    test('a run that is stopped while it waits leaves the line', async () => {
      const slots = { server: 'http://line.example/v1', limit: 1 }
      const [busy, waiting] = [await claimedIncident(database.db), await claimedIncident(database.db)]
      const stop = new AbortController()
      await withSlot(database.db, slots, { incidentId: busy, attempt: 1 }, async () => {
        const environment = new MockActivityEnvironment()
        const beat = new Promise<unknown>((resolve) => environment.once('heartbeat', resolve))
        const waited = environment.run(() =>
          waitForSlot(database.db, slots, { incidentId: waiting, attempt: 1 }, 60_000, stop.signal),
        )
        expect(await beat).toEqual({ waitsFor: 'model', ahead: 1 })
        stop.abort()
        await expect(waited).rejects.toThrow()
        expect(await slotsNow(database.db)).toContainEqual({ server: slots.server, held: 1, waiting: 0 })
      })
    })
  })

  describe('context', () => {
    const database = useDatabase()

    /** What a run of this incident is given first. */
    async function contextOf(incidentId: string) {
      const { db } = database
      const deps = { db, prompts: readPrompts(), protocol: 'native' as const, model: 'scripted', environment: {} }
      const { claim, assembleContext } = contextActivities(deps)
      await new MockActivityEnvironment({
        workflowExecution: { workflowId: `investigate:${incidentId}:1`, runId: 'r' },
      }).run(async () => {
        await claim({ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test' })
        await assembleContext(incidentId, 1)
      })
      const assembled = (await eventsOf(db, incidentId)).find(({ kind }) => kind === 'context_assembled')
      const digest = assembled?.kind === 'context_assembled' ? assembled.metadata.context.digest : ''
      return JSON.parse(await bodyText(db, digest))
    }

    test('an alert whose label means several things gets no resource, and the model gets five of them with the reason', async () => {
      const { db } = database
      const resources = ['1', '2', '3', '4', '5', '6'].map((n) => ({
        ...{ kind: 'node' as const, id: `app-${n}`, aliases: ['app.example.com'] },
      }))
      await db.transaction().execute((trx) => declareResources(trx, importSource, { resources, relations: [] }))
      const incidentId = await openedIncident(db, { labels: { instance: 'app.example.com:9100' } })
      const { incident, candidates } = await contextOf(incidentId)
      expect(incident.resource).toBeNull()
      const why = 'label instance says app.example.com, which means 6 things'
      expect(candidates).toEqual(['1', '2', '3', '4', '5'].map((n) => ({ resource: `node:app-${n}`, why })))
    })

    test('the model is given the directories that the agent of its machine may read and write, before it asks', async () => {
      const { db } = database
      const resource = { kind: 'node' as const, id: 'web-1' }
      const declared = { resources: [{ ...resource, aliases: [] }], relations: [] }
      await db.transaction().execute((trx) => declareResources(trx, importSource, declared))
      const roots = [
        { path: '/srv/web', writable: true },
        { path: '/var/log/web', writable: false },
      ]
      const device = {
        id: 'web-1',
        resource,
        url: 'http://127.0.0.1:9',
        urlEnv: null,
        mode: 'user' as const,
        guests: null,
      }
      const rest = {
        timeoutSeconds: 10,
        toolsAllowed: [],
        enabled: true,
        terms: deviceTerms.parse({ capabilities: [], roots }),
        manifestDays: 30,
      }
      await db.transaction().execute((trx) => addDevice(trx, { ...device, ...rest }))
      const incidentId = await openedIncident(db, { labels: { alertname: 'service_down', node: 'web-1' } })
      expect((await contextOf(incidentId)).paths).toEqual({ writable: ['/srv/web'], readable: ['/var/log/web'] })
    })
  })
})
