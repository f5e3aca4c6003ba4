import { expect, test } from '@jest/globals'
import type { Recording } from '../../../../cli/model/trial/recording.ts'
import { beginPlay } from '../../../../cli/model/trial/rows.ts'
import type { IncidentEvent } from '../../../../domain/event.ts'
import { callId, firstPlaceOfCode } from '../../../../domain/step-key.ts'
import { conversation } from '../../../../model/transcript.ts'
import { logOf, partOfRow } from '../../../support/events.ts'

test("a candidate that plays a follower gets the reads that code made before the first turn, and none of the model's own reads", () => {
  const look = (id: string, turn: number) => {
    const call = { callId: id, tool: 'get_node', arguments: { id: 'web-1' }, effect: 'read', targets: [] }
    const result = { ok: true, data: { id: 'web-1', status: 'critical' }, meta: {} }
    return [
      partOfRow('call_judged', { ...call, verdict: 'run', code: 'READ', reason: 'read-only' }, { turn }),
      partOfRow('tool_started', call, { turn }),
      partOfRow('tool_finished', { ...call, outcome: 'done', result, body: null, discovered: [] }, { turn }),
    ]
  }
  const events = logOf(
    partOfRow('claimed', {}, { turn: 0 }),
    partOfRow('context_assembled', { protocol: 'native' }, { turn: 0 }),
    ...look(callId(0, firstPlaceOfCode), 0),
    partOfRow('model_answered', { calls: [], content: '' }),
    ...look(callId(1, 0), 1),
  )
  const recording: Recording = {
    incident: { id: 'inc_1', type: 'disk_full', title: '', resource: null },
    attempt: 1,
    events,
    opening: events[1] as IncidentEvent<'context_assembled'>,
    ending: events.at(-1) as IncidentEvent<'resolved'>,
    texts: new Map(),
  }
  const play = beginPlay(recording, 'native')
  expect(play.rows.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5])
  expect(conversation(play.rows, 1)).toMatchObject([
    { kind: 'answer', calls: [{ tool: 'get_node' }] },
    { kind: 'result', envelope: { ok: true, data: { status: 'critical' } } },
  ])
})
