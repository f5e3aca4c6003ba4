import { expect, test } from '@jest/globals'
import { escalationReason } from '../../activities/reason.ts'
import { listDone } from '../../domain/done.ts'
import { escalationReport } from '../../domain/escalation.ts'
import { refusedOf } from '../../domain/postmortem-sections.ts'
import { logOf, partOfRow } from '../support/events.ts'

const targets = [
  { kind: 'proposal', id: 'prp_1' },
  { kind: 'host', id: 'host-1' },
  { kind: 'vm', id: 'vm-7' },
]

/** An incident that waited for the question of another one, and the answer that it was told. */
const waited = (answer: 'approval_decided' | 'approval_expired') =>
  logOf(
    partOfRow('call_judged', {
      ...{ callId: 'c4_0', tool: 'execute_migration', verdict: 'ask', approvalId: 'apr_1', joins: 'inc_other' },
      ...{ targets, effect: 'write', reason: 'it is high' },
    }),
    partOfRow(answer, {
      approvalId: 'apr_1',
      callId: 'c4_0',
      decision: 'deny',
      reason: 'not now',
      joined: 'inc_other',
    }),
  )

test('a person who reads an answer to the question of another incident reads what was asked', () => {
  const events = waited('approval_decided')
  expect(listDone(events)).toEqual([
    { text: expect.stringMatching(/^execute migration on .*host-1.*vm-7: not now$/), outcome: 'denied', rows: [1, 2] },
  ])
  expect(refusedOf(events).map(({ text }) => text)).toEqual([
    expect.stringMatching(/ denied: execute migration on .*host-1.*vm-7 \(not now\)\.$/),
  ])
  expect(escalationReason('TURN_LIMIT', events).reason).toMatch(
    /A person denied execute migration on .*host-1.*: not now/,
  )
  const at = '2026-11-22T02:00:00.000000Z'
  const incident = { title: 'Down', severity: 'critical', resource: null, attempt: 1, createdAt: at } as const
  const ending = { code: 'AGENT', said: null, nextStep: null, since: null }
  expect(escalationReport(incident, events, ending).denied).toEqual([
    expect.stringMatching(/^execute migration on .*host-1.*\(not now\)$/),
  ])
})

test('a person who reads that nobody answered also reads what was asked', () => {
  const events = waited('approval_expired')
  expect(listDone(events)).toMatchObject([
    { text: expect.stringMatching(/^execute migration on /), outcome: 'expired' },
  ])
  expect(escalationReason('APPROVAL_EXPIRED', events).reason).toMatch(/The question was: execute migration on .*vm-7/)
})
