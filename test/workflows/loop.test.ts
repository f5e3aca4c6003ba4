import { describe, expect, test } from '@jest/globals'
import { type LoopLimits, type LoopPorts, runLoop } from '../../workflows/loop.ts'
import type { CallOutcome, DecisionStatus, TurnOutcome } from '../../workflows/outcome.ts'

const calls = (...tools: string[]): TurnOutcome => ({ kind: 'calls', calls: tools })
const ask = (approvalId: string): CallOutcome => ({ kind: 'ask', approvalId, expiresInMs: 1000 })

type Script = {
  thoughts: TurnOutcome[]
  acts?: CallOutcome[]
  decisions?: (DecisionStatus | 'interrupted')[]
  verifications?: CallOutcome[]
  interruptedAt?: number
  turnMs?: number
}

/** Plays a script over the ports and writes down what the loop did. */
function played(script: Script) {
  const did: string[] = []
  let clockMs = 0
  const next = <T>(list: T[] | undefined, fallback: T): T => list?.shift() ?? fallback
  const ports: LoopPorts = {
    now: () => clockMs,
    think: async (turn) => {
      clockMs += script.turnMs ?? 0
      did.push(`think ${turn}`)
      return next(script.thoughts, calls('get_shard'))
    },
    waitForModel: async (turn, ahead) => {
      clockMs += 3_600_000
      did.push(`wait ${turn} behind ${ahead}`)
    },
    act: async (turn, call, tool, approvalId) => {
      did.push(`act ${turn}.${call} ${tool}${approvalId ? ` with ${approvalId}` : ''}`)
      return next(script.acts, { kind: 'next' })
    },
    verify: async (turn, call) => {
      did.push(`verify ${turn}.${call}`)
      return next(script.verifications, { kind: 'next' })
    },
    waitForDecision: async (approvalId) => {
      clockMs += 3 * 86_400_000
      did.push(`wait ${approvalId}`)
      return next(script.decisions, 'approved')
    },
    pause: async (waitMs) => {
      clockMs += waitMs
      did.push(`pause ${waitMs}`)
      return 'over'
    },
    interrupted: async (turn) => script.interruptedAt === turn,
    isStillWanted: async () => true,
    checkpoint: async () => {},
  }
  return { did, ports }
}

async function end(script: Script, limits: LoopLimits = { maxTurns: 3, timeBudgetMs: 60_000 }) {
  const { did, ports } = played(script)
  return { end: await runLoop(ports, limits), did }
}

describe('an investigation', () => {
  test('an ending that comes too early is kept: the run waits, uses up no limit, and judges it again', async () => {
    const waited = { kind: 'wait', waitMs: 100_000 } as const
    const script = { thoughts: [calls('resolve_incident')], acts: [waited, waited, { kind: 'closed' } as const] }
    const { end: how, did } = await end(script, { maxTurns: 3, timeBudgetMs: 1_000 })
    expect(how).toEqual({ end: 'closed' })
    expect(did.slice(1)).toEqual([
      'act 1.0 resolve_incident',
      'pause 100000',
      'act 1.0 resolve_incident',
      'pause 100000',
      'act 1.0 resolve_incident',
    ])
  })

  test('an hour in the queue for the model costs neither a turn nor any of the time limit', async () => {
    const waiting = (ahead: number): TurnOutcome => ({ kind: 'waiting', ahead })
    const script = { thoughts: [waiting(3), waiting(1), calls('get_shard'), { kind: 'closed' } as const] }
    const { end: how, did } = await end(script, { maxTurns: 2, timeBudgetMs: 1_000 })
    expect(how).toEqual({ end: 'closed' })
    expect(did).toEqual([
      'think 1',
      'wait 1 behind 3',
      'think 1',
      'wait 1 behind 1',
      'think 1',
      'act 1.0 get_shard',
      'think 2',
    ])
  })

  test('calls run in the order of the model, and a write is verified before the next', async () => {
    const { did } = await end({
      thoughts: [calls('get_shard', 'converge_shard', 'get_node'), { kind: 'closed' }],
      acts: [{ kind: 'next' }, { kind: 'verify' }, { kind: 'next' }],
    })
    expect(did).toEqual([
      'think 1',
      'act 1.0 get_shard',
      'act 1.1 converge_shard',
      'verify 1.1',
      'act 1.2 get_node',
      'think 2',
    ])
  })

  test('an approved call is judged again with its approval', async () => {
    const { did } = await end({
      thoughts: [calls('execute_migration'), { kind: 'closed' }],
      acts: [ask('a1'), { kind: 'verify' }],
    })
    expect(did.slice(1, 5)).toEqual([
      'act 1.0 execute_migration',
      'wait a1',
      'act 1.0 execute_migration with a1',
      'verify 1.0',
    ])
  })

  test('a call whose approval was withdrawn is judged again without one, and its new question is waited for', async () => {
    const { did } = await end({
      thoughts: [calls('execute_migration'), { kind: 'closed' }],
      acts: [ask('a1'), ask('a2'), { kind: 'next' }],
      decisions: ['withdrawn', 'approved'],
    })
    expect(did.slice(1, 6)).toEqual([
      'act 1.0 execute_migration',
      'wait a1',
      'act 1.0 execute_migration',
      'wait a2',
      'act 1.0 execute_migration with a2',
    ])
  })

  test('a denied call is over, and the model continues with the next turn', async () => {
    const { did } = await end({
      thoughts: [calls('execute_migration'), { kind: 'closed' }],
      acts: [ask('a1')],
      decisions: ['denied'],
    })
    expect(did).toEqual(['think 1', 'act 1.0 execute_migration', 'wait a1', 'think 2'])
  })

  test('three days of waiting for a person use up no time limit', async () => {
    const { end: ended } = await end({
      thoughts: [calls('execute_migration'), { kind: 'closed' }],
      acts: [ask('a1')],
    })
    expect(ended).toEqual({ end: 'closed' })
  })

  test.each<[string, Script, string]>([
    ['turns run out', { thoughts: [] }, 'TURN_LIMIT'],
    ['time runs out', { thoughts: [], turnMs: 40_000 }, 'TIME_BUDGET'],
    ['the model is gone', { thoughts: [{ kind: 'failed' }] }, 'MODEL_UNAVAILABLE'],
    ['tokens run out', { thoughts: [{ kind: 'over_budget' }] }, 'TOKEN_BUDGET'],
    ['an answer proves nothing', { thoughts: [{ kind: 'unproven' }] }, 'UNPROVEN_ANSWER'],
    ['three answers in a row cannot be used', { thoughts: Array(3).fill({ kind: 'correction' }) }, 'CORRECTION_LIMIT'],
    ['nobody decides', { thoughts: [calls('x')], acts: [ask('a')], decisions: ['expired'] }, 'APPROVAL_EXPIRED'],
    ['a write cannot be told', { thoughts: [calls('x')], acts: [{ kind: 'indeterminate' }] }, 'INDETERMINATE'],
    ['a call cannot be carried out', { thoughts: [calls('x')], acts: [{ kind: 'failed' }] }, 'ACT_FAILED'],
    [
      'a newer version answers a word this one does not know',
      { thoughts: [{ kind: 'quantum' } as never] },
      'UNKNOWN_OUTCOME',
    ],
    ['the same of a call', { thoughts: [calls('x')], acts: [{ kind: 'quantum' } as never] }, 'UNKNOWN_OUTCOME'],
    [
      'the platform changes with every question',
      { thoughts: [calls('x')], acts: Array(9).fill(ask('a')), decisions: Array(9).fill('withdrawn') },
      'APPROVAL_LOOP',
    ],
  ])('escalates when %s', async (_title, script, code) => {
    expect((await end(script)).end).toMatchObject({ end: 'escalate', code })
  })

  test('an unusable answer takes no turn, and three in a row still end the run', async () => {
    const bad: TurnOutcome = { kind: 'correction' }
    const script = () => ({
      thoughts: [bad, calls('x'), bad, bad, calls('x'), calls('x'), { kind: 'closed' } as const],
    })
    const free = await end(script(), { maxTurns: 3, timeBudgetMs: 60_000, correctionsAreFree: true })
    expect(free.did.filter((each) => each.startsWith('act'))).toHaveLength(3)
    expect(free.end).toMatchObject({ code: 'TURN_LIMIT', turn: 6 })
    // A run that began before counts as it began.
    expect((await end(script())).end).toMatchObject({ code: 'TURN_LIMIT', turn: 3 })
    const limits = { maxTurns: 9, timeBudgetMs: 60_000, correctionsAreFree: true }
    expect((await end({ thoughts: [bad, bad, bad] }, limits)).end).toMatchObject({ code: 'CORRECTION_LIMIT' })
  })

  test('five corrections in all are too many, even with good answers between them', async () => {
    const bad: TurnOutcome = { kind: 'correction' }
    const thoughts = [bad, calls('x'), bad, calls('x'), bad, calls('x'), bad, calls('x'), bad, calls('x'), bad]
    expect((await end({ thoughts }, { maxTurns: 30, timeBudgetMs: 60_000 })).end).toMatchObject({
      code: 'CORRECTION_LIMIT',
      turn: 11,
    })
  })

  test('a superseded run stops without a message', async () => {
    expect((await end({ thoughts: [{ kind: 'fenced' }] })).end).toEqual({ end: 'fenced' })
    expect((await end({ thoughts: [calls('x')], acts: [{ kind: 'fenced' }] })).end).toEqual({ end: 'fenced' })
  })

  test('an interruption between two calls ends it before the second', async () => {
    const { end: ended, did } = await end({ thoughts: [calls('a', 'b')], interruptedAt: 1 })
    expect(ended).toEqual({ end: 'closed' })
    expect(did).toEqual(['think 1', 'act 1.0 a'])
  })

  test('a question that an interruption without effect delayed is asked again as the same turn', async () => {
    const { did } = await end({ thoughts: [{ kind: 'interrupted' }, { kind: 'closed' }] })
    expect(did).toEqual(['think 1', 'think 1'])
  })

  test('a run that continues as new keeps its turn, its time and its corrections', async () => {
    const { ports, did } = played({ thoughts: [calls('x')] })
    const ended = await runLoop(
      ports,
      { maxTurns: 5, timeBudgetMs: 100 },
      { turn: 4, workedMs: 50, corrections: 4, correctionsInARow: 0 },
    )
    expect(did).toEqual(['think 5', 'act 5.0 x'])
    expect(ended).toMatchObject({ code: 'TURN_LIMIT' })
  })
})
