import { expect, test } from '@jest/globals'
import type { IncidentEvent } from '../../domain/event.ts'
import { tellRows } from '../../domain/told-rows.ts'
import { logOf, partOfRow } from '../support/events.ts'

const call = { callId: 'c1_0', tool: 'get_node', arguments: { id: 'node-a' } }
const tell = (...rows: IncidentEvent[]) => tellRows(logOf(...rows) as Parameters<typeof tellRows>[0])

test('a call has one row, with its result', () => {
  const rows = tell(
    { ...partOfRow('call_judged', { ...call, verdict: 'run' }), detail: 'run: get_node (READ) read-only' },
    { ...partOfRow('tool_started', call), detail: 'Calling tool: get_node' },
    {
      ...partOfRow('tool_finished', { ...call, said: 'node-a is critical: disk 97 %', result: { ok: true, meta: {} } }),
      detail: 'Called tool: get_node',
    },
  )
  expect(rows).toEqual([
    expect.objectContaining({
      seq: 3,
      kind: 'tool_finished',
      tool: 'get_node',
      arguments: { id: 'node-a' },
      said: 'node-a is critical: disk 97 %',
    }),
  ])
})

test('a failed call shows why, and a refusal and a call without an end stay', () => {
  const rows = tell(
    partOfRow('tool_finished', { ...call, result: { ok: false, error: { message: 'no such node' }, meta: {} } }),
    { ...partOfRow('call_judged', { ...call, callId: 'c2_0', verdict: 'refuse' }), detail: 'refuse: get_node (LOOP)' },
    { ...partOfRow('tool_started', { ...call, callId: 'c3_0' }), detail: 'Calling tool: get_node' },
    {
      ...partOfRow('tool_finished', { ...call, callId: 'c3_0', result: { ok: true, meta: {} } }),
      attempt: 2,
      detail: 'Called',
    },
  )
  expect(rows.map(({ kind, said }) => [kind, said])).toEqual([
    ['tool_finished', 'failed: no such node'],
    ['call_judged', 'refuse: get_node (LOOP)'],
    ['tool_started', 'Calling tool: get_node'],
    ['tool_finished', 'Called'],
  ])
})

test('a row that is no call is shown in its own words', () => {
  const [row] = tell({
    ...partOfRow('alert_received', { fingerprint: 'f' }),
    attempt: null as never,
    detail: 'DiskFull fires',
  })
  expect(row).toEqual({
    seq: 1,
    at: expect.any(String),
    actor: expect.any(String),
    kind: 'alert_received',
    said: 'DiskFull fires',
  })
})
