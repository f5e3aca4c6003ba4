import { describe, expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { expirySecondsOf } from '../../activities/approvals.ts'
import { rule } from '../../activities/rule.ts'
import { send } from '../../activities/send.ts'
import { closeByReading, lookOnce, verifyWrite } from '../../activities/verify.ts'
import { HttpError } from '../../clients/http.ts'
import { append } from '../../db/append.ts'
import { eventsOf } from '../../db/events.ts'
import { putConfig, readSettings } from '../../db/settings.ts'
import { waitOf } from '../../db/waits.ts'
import { failedEnvelope } from '../../domain/envelope.ts'
import { agentActor, type IncidentEvent } from '../../domain/event.ts'
import { stepKey } from '../../domain/step-key.ts'
import type { CoreAnswer, CorePort } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'

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
      db.transaction().execute((trx) => rule({ environment: {} }, trx, place, { ...call, edit: null }, null))
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
  }, 120_000)

  test('only when patience is over does the silence become an answer', async () => {
    const { tries, result } = await read(Number.POSITIVE_INFINITY, 1_000)
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
    const { place, key } = await written('proc_kill', { on: node.id, pid: 7, start_time: '1', signal: 'TERM' }, 'done')
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
