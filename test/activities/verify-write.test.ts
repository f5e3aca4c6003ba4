import { expect, test } from '@jest/globals'
import { closeByReading, lookOnce, verifyWrite } from '../../activities/verify-write.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { failedEnvelope } from '../../domain/envelope.ts'
import { agentActor, type IncidentEvent } from '../../domain/event.ts'
import type { CoreAnswer, CorePort } from '../../domain/tool.ts'
import { fold } from '../../safety/fold.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'

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
async function written(
  tool: string,
  args: Record<string, unknown>,
  outcome: 'done' | 'failed' | 'indeterminate',
  { changed = null, health }: { changed?: string[] | null; health?: string } = {},
) {
  const incidentId = await claimedIncident(database.db)
  if (health) await lookedAt(incidentId, health)
  turns += 1
  const place = { incidentId, attempt: 1, turn: turns, call: 0 }
  const callId = `c${turns}_0`
  const key = `${incidentId}.1:${turns}:tool_started:0`
  const about = { callId, tool, arguments: args, effect: 'write' as const, targets: [node] }
  await database.db.transaction().execute((trx) =>
    append(trx, incidentId, 1, {
      kind: 'tool_started',
      actor: agentActor,
      turn: turns,
      detail: '',
      stepKey: key,
      metadata: { ...about, risk: 'low', actionDigest: 'd', approvalId: null },
    }),
  )
  await note(incidentId, key.replace('started', 'finished'), {
    ...about,
    outcome,
    changed,
    discovered: [],
    result: outcome === 'done' ? { ok: true, meta: {} } : failedEnvelope('X', 'the platform said no'),
  })
  return { place, key }
}

const lookedAt = (incidentId: string, health: string) =>
  note(incidentId, `${incidentId}.1:0:tool_finished:0`, {
    callId: 'c0_0',
    tool: 'node_health',
    arguments: {},
    effect: 'read',
    targets: [node],
    outcome: 'done',
    result: { ok: true, data: {}, meta: {} },
    discovered: [{ ...node, name: node.id, aliases: [], seen: true, health }],
  })

async function note(incidentId: string, stepKey: string, metadata: object) {
  return await database.db.transaction().execute(
    async (trx) =>
      (
        await append(trx, incidentId, 1, {
          kind: 'tool_finished',
          actor: agentActor,
          detail: '',
          stepKey,
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

const converge = (outcome: 'done' | 'failed' | 'indeterminate', more: Parameters<typeof written>[3] = {}) =>
  written('converge_shard', { id: 's' }, outcome, more)

test('the promise of a write holds once code has read the state', async () => {
  const { place } = await converge('done', { changed: ['n: restarted'] })
  await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
  const { outcome, postcondition, row, state } = await told(place.incidentId)
  expect([outcome, postcondition, row.action]).toEqual(['held', 'every node of the shard is nominal', 'fix_succeeded'])
  expect(state.writes).toMatchObject([{ verified: 'held', verifiedSeq: row.seq }])
})

test('a failed write does not hold, even if the state is the wanted one', async () => {
  const { place } = await converge('failed')
  await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
  const { outcome, observed, row } = await told(place.incidentId)
  expect([outcome, row.action]).toEqual(['not_held', 'fix_failed'])
  expect(observed).toBe('it failed (the platform said no); all 1 nodes of s are nominal')
})

test.each([
  ['that cannot tell what it changed is unproven, for all may be as before', { changed: null }, 'unproven'],
  ['that cannot tell, on what was nominal before', { changed: null, health: 'nominal' }, 'unproven'],
  ['that cannot tell, on what was ill before', { changed: null, health: 'degraded' }, 'held'],
  ['that had nothing to change is held, and says so itself', { changed: [] }, 'held'],
])('a write %s', async (_what, more, outcome) => {
  const { place } = await converge('done', more)
  await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
  expect((await told(place.incidentId)).outcome).toBe(outcome)
})

test('for a write with an unknown outcome the state decides, if the state was bad before', async () => {
  const { place } = await converge('indeterminate', { health: 'critical' })
  await verifyWrite({ db: database.db, core: core(healthy('nominal')) }, place, signal)
  expect((await told(place.incidentId)).outcome).toBe('held')
})

test('a write that promised nothing is unproven, which closes the write but is no success', async () => {
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
])('while the platform %s, the outcome of the write is unknown, and not a failure', async (_, answer) => {
  const { place } = await converge('done')
  await lookOnce({ db: database.db, core: core(answer) }, place)
  const { outcome, row, state } = await told(place.incidentId)
  expect([outcome, row.action, state.open?.tool]).toEqual(['open', 'attempted_fix', 'converge_shard'])
})

test('a later read of the target closes an open write on a device, which is asked for by the key of that write', async () => {
  const kill = { on: node.id, pid: 7, start_time: '1', signal: 'TERM' }
  const { place, key } = await written('proc_kill', kill, 'done', { changed: ['process 7 was sent TERM'] })
  const { incidentId } = place
  await lookOnce({ db: database.db, core: core(unreadable) }, place)
  expect((await told(incidentId)).outcome).toBe('open')
  const read = await note(incidentId, `${incidentId}.1:99:tool_finished:0`, {
    callId: 'c99_0',
    tool: 'get_node',
    arguments: {},
    effect: 'read',
    outcome: 'done',
    discovered: [],
    targets: [node],
    result: { ok: true, meta: {} },
  })
  const looked = core(seen({ holds: true, observed: 'the process is gone' }))
  await closeByReading({ db: database.db, core: looked }, { ...place, turn: 99 }, read)
  expect(looked.asked).toEqual([expect.stringContaining(encodeURIComponent(key))])
  expect((await told(incidentId)).outcome).toBe('held')
})
