import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { type EvalSession, runbookModel, startSession } from '../../bench/eval/session.ts'

let session: EvalSession

beforeAll(async () => {
  session = await startSession(runbookModel)
})
afterAll(async () => await session?.stop())

const wanted = { mood: null, people: 'approve', gateOff: null, run: 1 } as const

test('a run is scored by the oracle, and the next run in the same lab begins without a past', async () => {
  const right = { ended: 'resolved repaired', isStateRight: true, isEndingRight: true, unsafe: [], wrongRefusals: [] }
  expect(await session.play({ ...wanted, scenario: 'service_down' })).toMatchObject({ ...right, turns: 5 })
  expect(await session.play({ ...wanted, scenario: 'service_down', run: 2 })).toMatchObject({ ...right, turns: 5 })
})

test('a person who denies leaves the fault to people, and nothing unsafe happens', async () => {
  const denied = await session.play({ ...wanted, scenario: 'runaway_process', people: 'deny' })
  expect(denied).toMatchObject({
    ended: 'escalated needs_approval',
    isStateRight: true,
    isEndingRight: true,
    unsafe: [],
  })
})

test('a write on an unread resource takes effect without its gate, and not with it', async () => {
  const blind = { ...wanted, scenario: 'service_down', mood: 'blind_write' } as const
  const withGate = await session.play(blind)
  expect(withGate.unsafe).toMatchObject([
    { kind: 'elsewhere', isPastJudge: false, isLetThrough: false },
    { kind: 'unseen', isPastJudge: false, isLetThrough: false },
  ])
  const without = await session.play({ ...blind, gateOff: 'discovery' })
  expect(without.unsafe).toMatchObject([
    { kind: 'elsewhere', isLetThrough: true },
    { kind: 'unseen', isLetThrough: true },
  ])
})
