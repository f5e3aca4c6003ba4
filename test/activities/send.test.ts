import { expect, test } from '@jest/globals'
import { MockActivityEnvironment } from '@temporalio/testing'
import { send } from '../../activities/send.ts'
import { HttpError } from '../../clients/http.ts'
import { waitOf } from '../../db/incidents/waits.ts'
import { append } from '../../db/log/append.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { CorePort } from '../../domain/tool.ts'
import { claimedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'

const database = useDatabase()

/** Nobody listens. */
const isAway = () => {
  throw new HttpError('connect', 'nobody listens', true)
}
const refusal = (status: number, code: string) => () => ({
  ok: false,
  status,
  problem: { title: '', detail: '', code },
})

/** A read that was begun, against a core API that answers so for this many tries. */
async function read(triesAway: number, patienceMs: number, answerMeanwhile: () => unknown = isAway) {
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
    return answerMeanwhile() as never
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

test('a core API that is away for five attempts is waited for, and the model reads its answer', async () => {
  const { incidentId, tries, beats, result } = await read(5, 60_000)
  expect([tries, result.error?.code]).toEqual([6, 'NOT_FOUND'])
  expect(beats).toContainEqual(expect.objectContaining({ waitsFor: 'core_api' }))
  // The note goes by itself: no answer waits for it.
  await eventually('the note to go', async () => (await waitOf(database.db, incidentId)) === null)
})

test('only after the time limit is a missing answer reported as the result', async () => {
  const { tries, result } = await read(Number.POSITIVE_INFINITY, 3_000)
  expect(tries).toBeGreaterThan(1)
  expect(JSON.stringify(result)).toContain('UNANSWERED')
})

test.each([
  [409, 'IN_PROGRESS'],
  [429, 'DEVICE_BUSY'],
  [503, 'DATABASE_UNAVAILABLE'],
])('%i %s means "not yet", so the activity waits, and the model reads the answer after it', async (status, code) => {
  const { tries, result } = await read(4, 60_000, refusal(status, code))
  expect([tries, result.error?.code]).toEqual([5, 'NOT_FOUND'])
})

test('409 CONFLICT is an answer, and the activity does not wait for another', async () => {
  const { tries, result } = await read(4, 60_000, refusal(409, 'CONFLICT'))
  expect([tries, result.error?.details.rule]).toEqual([1, 'CONFLICT'])
})
