import { expect, test } from '@jest/globals'
import { actOnce } from '../../../../cli/model/trial/act.ts'
import type { Recording } from '../../../../cli/model/trial/recording.ts'
import { addRow, beginPlay, type Play } from '../../../../cli/model/trial/rows.ts'
import type { IncidentEvent, ProposedCall } from '../../../../domain/event.ts'
import { plainPolicy } from '../../../../domain/refusal.ts'
import { callId, firstPlaceOfCode } from '../../../../domain/step-key.ts'
import { conversation } from '../../../../model/transcript.ts'
import { answeredWith, logOf, looked, partOfRow, verified } from '../../../support/events.ts'

const incidentId = 'inc_00000000000000000000000001'
const shard = { kind: 'shard', id: 'db-1' } as const
const given = (tool: string) => ({ id: shard.id, ...(tool === 'converge_shard' && { reason: 'its replica lags' }) })

/** A row of a call as its judge, its start and its end wrote it. */
function called(id: string, turn: number, tool: string, effect: 'read' | 'write', data: object): IncidentEvent[] {
  const call = { callId: id, tool, arguments: given(tool), effect, targets: [shard] }
  const result = { ok: true, data, meta: {} }
  const prepared = { ok: true, targets: [shard], identity: given(tool), stateFingerprint: 's' }
  const basis = { at: '2026-11-21T02:00:00.000Z', policy: { ...plainPolicy(incidentId, shard) }, prepared }
  return [
    partOfRow('call_judged', { ...call, verdict: 'run', code: 'OK', reason: 'as it may', basis }, { turn }),
    partOfRow('tool_started', call, { turn }),
    partOfRow('tool_finished', { ...call, outcome: 'done', result, body: null, discovered: [] }, { turn }),
  ]
}

/**
 * A follower whose write in turn 2 held, after which code looked; its play has come to the write.
 */
function followed(): Play {
  const after = callId(2, firstPlaceOfCode)
  const events = logOf(
    partOfRow('claimed', {}, { turn: 0 }),
    partOfRow('context_assembled', { protocol: 'native' }, { turn: 0 }),
    ...called(callId(1, 0), 1, 'get_shard', 'read', { id: shard.id, status: 'degraded' }),
    ...called(callId(2, 0), 2, 'converge_shard', 'write', { detail: 'converged db-1' }),
    verified(callId(2, 0), 'held'),
    ...called(after, 2, 'get_shard', 'read', { id: shard.id, status: 'nominal' }),
    partOfRow('resolved', { outcome: 'repaired', claims: [] }, { turn: 3 }),
  )
  const recording: Recording = {
    incident: { id: incidentId, type: 'replication_lag', title: '', resource: shard },
    attempt: 1,
    events,
    opening: events[1] as IncidentEvent<'context_assembled'>,
    ending: events.at(-1) as IncidentEvent<'resolved'>,
    texts: new Map(),
  }
  const play = beginPlay(recording, 'native')
  const seen = looked('c1_0', [shard])
  addRow(play, { kind: seen.kind, turn: 1, metadata: seen.metadata } as Parameters<typeof addRow>[1])
  return play
}

const call = (turn: number, place: number, tool: string): ProposedCall => ({
  ...{ id: callId(turn, place), tool, problem: null },
  arguments: given(tool),
})

async function played(...tools: string[]): Promise<string[]> {
  const play = followed()
  const calls = tools.map((tool, place) => call(4, place, tool))
  addRow(play, { kind: 'model_answered', turn: 4, metadata: answeredWith(calls) })
  for (const each of calls) await actOnce(play, 4, each)
  return conversation(play.rows, 1).flatMap((entry) =>
    entry.kind === 'result' ? [`${entry.callId} ${JSON.stringify(entry.envelope.data)}`] : [],
  )
}

test('a candidate that repairs like the log gets the reads that code made for its model after that write', async () => {
  expect(await played('converge_shard')).toEqual([
    'c4_0 {"detail":"converged db-1"}',
    `${callId(4, firstPlaceOfCode)} {"id":"db-1","status":"nominal"}`,
  ])
})

test('a candidate that asks for more in the same answer reads by itself', async () => {
  expect(await played('converge_shard', 'get_shard')).toEqual([
    'c4_0 {"detail":"converged db-1"}',
    'c4_1 {"id":"db-1","status":"nominal"}',
  ])
})
