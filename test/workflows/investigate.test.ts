import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { type WorkflowHandle, WorkflowUpdateFailedError } from '@temporalio/client'
import { NonRetryable, RetryLater, sanitizeFailures } from '../../activities/failures.ts'
import { StaleRunError } from '../../db/log/append.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import {
  alertResolved,
  approve,
  cancelInvestigation,
  type DecisionStatus,
  decide,
  decided,
  deny,
  pendingApproval,
} from '../../workflows/outcome.ts'
import { eventually } from '../support/directory.ts'
import {
  ask,
  calls,
  endlessThought,
  hourMs,
  investigation,
  type RunScript,
  scriptedRun,
} from '../support/scripted-run.ts'
import { newTaskQueue, scheduled, spoken, useTemporal } from '../support/temporal.ts'

// Nothing is cached: every step of these runs replays its whole history, as after a restart of the
// worker.
const temporal = useTemporal({ cached: 0 })

type Run = WorkflowHandle<typeof InvestigateIncident>
type Scripted = ReturnType<typeof scriptedRun>

/** Plays a run to its end while `meanwhile` does what people and alerts do. */
async function played(
  script: RunScript,
  meanwhile: (run: Run, scripted: Scripted) => Promise<unknown> = async () => {},
) {
  const scripted = scriptedRun(script)
  return await temporal.working(scripted.activities, async (taskQueue) => {
    const run = await start(taskQueue)
    await meanwhile(run, scripted)
    return { result: await run.result(), run, ...scripted }
  })
}

async function start(taskQueue: string): Promise<Run> {
  return await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
    taskQueue,
    workflowId: `investigate:inc_${randomBytes(4).toString('hex')}:1`,
    args: [investigation()],
  })
}

/** A model that wants one approval, and ends after it. */
const oneApproval = (): RunScript => ({
  think: [calls('execute_migration'), { kind: 'closed' }],
  act: [ask('apr_1', 7 * 24 * hourMs), { kind: 'verify' }],
})

/**
 * What a run reads that looks at its expiry: pending still, for a person gave it more time, and
 * then approved.
 */
function extendedThenApproved(): RunScript['readDecision'] {
  const statuses: DecisionStatus[] = ['pending']
  return async () => ({ status: statuses.shift() ?? 'approved', remainingMs: 300 })
}

const parked = (run: Run) =>
  eventually('the run to wait', async () => (await run.describe()).searchAttributes.Status?.[0] === 'awaiting_approval')

describe('a decision', () => {
  test.each(['approve', 'deny'] as const)(
    'to %s by signal reaches the decisions as it was sent, except for its claim of who decides',
    async (verb) => {
      const sent = { token: 'tok_1', approvalId: 'apr_1', reason: 'the night shift says so' }
      const status = verb === 'approve' ? 'approved' : 'denied'
      const { decisions, did } = await played({ ...oneApproval(), readDecision: [status] }, async (run) => {
        await parked(run)
        await run.signal(verb === 'approve' ? approve : deny, { ...sent, by: 'somebody' } as never)
      })
      expect(decisions).toEqual([{ ...sent, decision: verb, via: 'signal' }])
      expect(did.filter((step) => step.startsWith('act'))).toEqual(
        verb === 'approve' ? ['act 1.0', 'act 1.0 with apr_1'] : ['act 1.0'],
      )
    },
  )

  test('by update is answered with its outcome', async () => {
    const sent = { decision: 'approve' as const, token: 'tok_1', approvalId: 'apr_1' }
    const answer = { outcome: 'refused', status: 'pending', message: 'a second person must approve' }
    let status: 'pending' | 'approved' = 'pending'
    const { decisions } = await played(
      { ...oneApproval(), decide: async () => answer, readDecision: async () => ({ status, remainingMs: hourMs }) },
      async (run) => {
        await parked(run)
        expect(await run.executeUpdate(decide, { args: [sent] })).toEqual(answer)
        status = 'approved'
        await run.signal(decided)
      },
    )
    expect(decisions).toEqual([{ ...sent, via: 'update' }])
  })

  test('that is malformed is rejected and leaves nothing behind', async () => {
    const { decisions, run } = await played(oneApproval(), async (run) => {
      await parked(run)
      const malformed = [
        { decision: 'maybe', token: 'malformed' },
        { decision: 'approve', approvalId: 'malformed' },
        { decision: 'approve', token: { malformed: 1 } },
        { decision: 'deny', token: 'malformed'.repeat(100) },
        null,
        'malformed',
      ]
      for (const body of malformed) {
        await expect(run.executeUpdate(decide, { args: [body as never] })).rejects.toThrow(WorkflowUpdateFailedError)
      }
      await run.signal(decided)
    })
    expect(decisions).toEqual([])
    expect(JSON.stringify(spoken(await run.fetchHistory()))).not.toContain('malformed')
  })

  test('that is recorded elsewhere is read from its row when the run is woken', async () => {
    const { did } = await played({ ...oneApproval(), readDecision: ['pending', 'approved'] }, async (run, { did }) => {
      await parked(run)
      await run.signal(decided)
      await eventually('the first look', async () => did.includes('read apr_1'))
      await run.signal(decided)
    })
    expect(did.slice(2)).toEqual([
      'think 1',
      'act 1.0',
      'read apr_1',
      'read apr_1',
      'act 1.0 with apr_1',
      'verify 1.0',
      'think 2',
      'closing',
    ])
  })

  test('that comes after the first expiry counts if a person gave it more time, because the timer follows the row', async () => {
    const { did } = await played({
      ...oneApproval(),
      act: [ask('apr_1', 300), { kind: 'verify' }],
      readDecision: extendedThenApproved(),
    })
    expect(did.slice(3)).toEqual([
      'act 1.0',
      'read apr_1',
      'read apr_1',
      'act 1.0 with apr_1',
      'verify 1.0',
      'think 2',
      'closing',
    ])
  })

  test('that is sent before the run waits for it is not lost', async () => {
    const scripted = scriptedRun(oneApproval())
    const taskQueue = newTaskQueue()
    const run = await start(taskQueue)
    await run.signal(decided)
    await temporal.working(scripted.activities, () => run.result(), taskQueue)
    expect(scripted.did).toContain('act 1.0 with apr_1')
  })

  test('that comes twice at once is judged once and used once', async () => {
    const scripted = scriptedRun(oneApproval())
    const taskQueue = newTaskQueue()
    const run = await start(taskQueue)
    const message = { token: 'tok_1', approvalId: 'apr_1' }
    await run.signal(approve, message)
    await run.signal(approve, message)
    await temporal.working(scripted.activities, () => run.result(), taskQueue)
    expect(scripted.decisions).toHaveLength(1)
    expect(scripted.did.filter((step) => step === 'act 1.0 with apr_1')).toHaveLength(1)
  })

  test('that cannot be judged does not end its run', async () => {
    const { did } = await played(
      {
        ...oneApproval(),
        ...sanitizeFailures(
          {
            decide: async () => {
              throw new NonRetryable('BROKEN')
            },
          },
          silent,
        ),
      },
      async (run, { did }) => {
        await parked(run)
        await run.signal(approve, { token: 'tok_1' })
        await eventually('the decision', async () => did.some((step) => step.startsWith('decide')))
        await run.signal(decided)
      },
    )
    expect(did).toContain('act 1.0 with apr_1')
  })

  test('among a thousand forged ones is accepted, and they cost a dozen activities', async () => {
    const scripted = scriptedRun({
      ...oneApproval(),
      decide: async ({ token }) => ({
        outcome: token === 'real' ? 'recorded' : 'forbidden',
        status: null,
        message: null,
      }),
    })
    const taskQueue = newTaskQueue()
    const run = await start(taskQueue)
    const send = (from: number) =>
      Promise.all(Array.from({ length: 500 }, (_, at) => run.signal(approve, { token: `forged ${from + at}` })))
    await send(0)
    await run.signal(approve, { token: 'real' })
    await send(500)
    // Replaying a thousand signals at every step is the cost of other tests.
    await temporal.working(scripted.activities, () => run.result(), taskQueue, 1)
    expect(scheduled(await run.fetchHistory()).filter((name) => name === 'decideAll').length).toBeLessThanOrEqual(12)
    expect(scripted.decisions.map(({ token }) => token)).toContain('real')
    expect(scripted.did).toContain('act 1.0 with apr_1')
  })

  test.each([
    ['a text', 'tok_in_a_text_0123456789012345678901234567ab'],
    ['a token beside its place', { Token: 'tok_in_a_text_0123456789012345678901234567ab' }],
    ['nothing', null],
    ['a list', [{ token: 1 }]],
  ])('that comes as %s decides nothing, and the run continues', async (_what, sent) => {
    const { decisions, did } = await played(oneApproval(), async (run) => {
      await parked(run)
      await run.signal(deny, sent as never)
      await run.signal(decided)
    })
    expect(decisions).toEqual([])
    expect(did).toContain('act 1.0 with apr_1')
  })
})

describe('a run is stopped', () => {
  const stops: [string, (run: Run) => Promise<unknown>, string][] = [
    ['its alert ends', (run) => run.signal(alertResolved), 'alert_resolved'],
    ['a person cancels it', (run) => run.signal(cancelInvestigation), 'cancel'],
    ['it is cancelled in Temporal itself', (run) => run.cancel(), 'stopped'],
  ]

  test.each(stops.slice(1))(
    'when %s while the model thinks, and the model request is cancelled',
    async (_title, stop, why) => {
      const { think, begun, stopped } = endlessThought()
      const { did, result } = await played({ think }, async (run) => {
        await begun
        await stop(run)
        await stopped
      })
      const asked = why === 'cancel' ? ['is a stop wanted?'] : []
      expect(did).toEqual(['claim', 'context', 'think 1', ...asked, `end early: ${why}`, 'closing'])
      expect(result.status).toBe(why === 'cancel' ? 'cancelled' : 'escalated')
    },
  )

  test.each(stops)('when %s while it waits for a person', async (_title, stop, why) => {
    const { did } = await played(oneApproval(), async (run) => {
      await parked(run)
      await stop(run)
    })
    expect(did.slice(2)).toEqual(['think 1', 'act 1.0', `end early: ${why}`, 'closing'])
  })

  test.each(stops)('when %s between two calls, and the started one is finished first', async (_title, stop, why) => {
    const acting = Promise.withResolvers<void>()
    const heard = Promise.withResolvers<void>()
    const { did } = await played(
      {
        think: [calls('restart_node', 'get_node')],
        act: async () => {
          acting.resolve()
          await heard.promise
          return { kind: 'verify' }
        },
      },
      async (run) => {
        await acting.promise
        await stop(run)
        heard.resolve()
      },
    )
    expect(did.slice(2)).toEqual(['think 1', 'act 1.0', 'verify 1.0', `end early: ${why}`, 'closing'])
  })

  /** The model answers only after the run was told that its alerts ended. */
  async function endingWhileItThinks(endEarly: () => Promise<boolean>) {
    const begun = Promise.withResolvers<void>()
    const heard = Promise.withResolvers<void>()
    const script: RunScript = {
      think: async (turn) => {
        begun.resolve()
        await heard.promise
        return turn === 1 ? calls('converge_shard') : { kind: 'closed' }
      },
      endEarly,
    }
    return await played(script, async (run) => {
      await begun.promise
      await run.signal(alertResolved)
      await run.query(pendingApproval)
      heard.resolve()
    })
  }

  test('when its alert ends while the model thinks: the answer is awaited, and none of its calls begins', async () => {
    const { did } = await endingWhileItThinks(async () => true)
    expect(did.slice(2)).toEqual(['think 1', 'end early: alert_resolved', 'closing'])
  })

  test('not if the end of an alert does not end it, and the same turn is not asked twice', async () => {
    const { did } = await endingWhileItThinks(async () => false)
    expect(did.filter((step) => step.startsWith('think'))).toEqual(['think 1', 'think 2'])
    expect(did.slice(2, 5)).toEqual(['think 1', 'end early: alert_resolved', 'act 1.0'])
  })

  test('not when an alert ends while a person is asked about a further repair, and the question stays open', async () => {
    const { did } = await played({ ...oneApproval(), endEarly: async () => false }, async (run, { did }) => {
      await parked(run)
      await run.signal(alertResolved)
      await eventually('the alert to be heeded', async () => did.includes('end early: alert_resolved'))
      await run.signal(decided)
    })
    expect(did).toContain('act 1.0 with apr_1')
  })

  test('not by a signal without a person: the model answers, and the run continues', async () => {
    const begun = Promise.withResolvers<void>()
    const heard = Promise.withResolvers<void>()
    const { did, result } = await played(
      {
        think: async () => {
          begun.resolve()
          await heard.promise
          return { kind: 'closed' }
        },
        isStopWanted: async () => false,
        endEarly: async () => false,
      },
      async (run, { did }) => {
        await begun.promise
        for (let sent = 0; sent < 100; sent += 1) await run.signal(cancelInvestigation)
        await eventually('a look', async () => did.includes('is a stop wanted?'))
        heard.resolve()
      },
    )
    expect(did.filter((step) => step.startsWith('think'))).toEqual(['think 1'])
    expect(did.filter((step) => step.startsWith('is a stop')).length).toBeLessThanOrEqual(20)
    expect(result.status).toBe('resolved')
  })

  test("by a person's stop rather than by the end of its alert", async () => {
    const { think, begun } = endlessThought()
    const scripted = scriptedRun({ think })
    const taskQueue = newTaskQueue()
    const run = await start(taskQueue)
    await run.signal(cancelInvestigation)
    await run.signal(alertResolved)
    await temporal.working(scripted.activities, () => run.result(), taskQueue)
    expect(scripted.did).toEqual(['claim', 'context', 'end early: cancel', 'closing'])
    expect(await Promise.race([begun.then(() => 'asked'), 'not asked'])).toBe('not asked')
  })

  test('by a person while the end of its alert is read: no further call is made', async () => {
    const looking = Promise.withResolvers<void>()
    const heard = Promise.withResolvers<void>()
    const scripted = scriptedRun({
      endEarly: async (why) => {
        if (why === 'cancel') return true
        looking.resolve()
        await heard.promise
        return false
      },
      think: [calls('restart_node')],
    })
    const taskQueue = newTaskQueue()
    const run = await start(taskQueue)
    await run.signal(alertResolved)
    await temporal.working(
      scripted.activities,
      async () => {
        await looking.promise
        await run.signal(cancelInvestigation)
        heard.resolve()
        await run.result()
      },
      taskQueue,
    )
    expect(scripted.did).toEqual(['claim', 'context', 'end early: alert_resolved', 'end early: cancel', 'closing'])
  })

  test('in Temporal itself, and a decision that comes meanwhile does not interrupt it', async () => {
    const ending = Promise.withResolvers<void>()
    const heard = Promise.withResolvers<void>()
    const { did, result, decisions } = await played(
      {
        ...oneApproval(),
        endEarly: async () => {
          ending.resolve()
          await heard.promise
          return true
        },
      },
      async (run, { decisions }) => {
        await parked(run)
        await run.cancel()
        await ending.promise
        await run.signal(approve, { token: 'tok_1' })
        await eventually('the decision', async () => decisions.length === 1)
        heard.resolve()
      },
    )
    expect(decisions).toHaveLength(1)
    expect(did.at(-1)).toBe('closing')
    expect(result.status).toBe('escalated')
  })
})

describe('a run', () => {
  test('whose incident belongs to another run ends without a change', async () => {
    const { did, result } = await played({ claim: async () => null })
    expect(did).toEqual(['claim', 'closing'])
    expect(result.status).toBe('open')
  })

  test.each<[string, RunScript]>([
    ['before it asks the model', { think: [{ kind: 'fenced' }] }],
    ['before a call', { think: [calls('restart_node', 'get_node')], act: [{ kind: 'fenced' }] }],
    [
      'while it verifies',
      {
        think: [calls('restart_node', 'get_node')],
        act: [{ kind: 'verify' }],
        verify: async () => ({ kind: 'fenced' }),
      },
    ],
  ])('that was superseded ends without a message: %s', async (_title, script) => {
    const { did } = await played(script)
    expect(did.filter((step) => step.startsWith('escalate') || step === 'act 1.1')).toEqual([])
    expect(did.at(-1)).toBe('closing')
  })

  test.each(['readDecision', 'escalate'] as const)(
    'that was superseded during its wait ends without a message, and is no failure: %s',
    async (activity) => {
      const stale = async (): Promise<never> => {
        throw new StaleRunError('inc_1', 1, 2)
      }
      const scripted = scriptedRun({ ...oneApproval(), readDecision: ['expired'], [activity]: stale })
      const activities = sanitizeFailures(scripted.activities as never, silent)
      await temporal.working(activities, async (taskQueue) => {
        const run = await start(taskQueue)
        await parked(run)
        await run.signal(decided)
        await run.result()
      })
      expect(scripted.did.filter((step) => step.startsWith('act'))).toEqual(['act 1.0'])
      expect(scripted.did.at(-1)).toBe('closing')
    },
  )

  test('that waits for the model does so in its own task queue, where hundreds delay no request', async () => {
    const { run, did } = await played({ think: [{ kind: 'waiting', ahead: 200 }, { kind: 'closed' }] })
    expect(did.filter((step) => /think|slot/.test(step))).toEqual(['think 1', 'await slot', 'think 1'])
    const { events } = await run.fetchHistory()
    const queues = events?.flatMap(({ activityTaskScheduledEventAttributes: each }) =>
      /^(?:think|awaitSlot)$/.test(each?.activityType?.name ?? '')
        ? [[each?.activityType?.name, each?.taskQueue?.name?.replace(/.*-/, '')]]
        : [],
    )
    expect(queues).toEqual([
      ['think', 'llm'],
      ['awaitSlot', 'line'],
      ['think', 'llm'],
    ])
  })

  test('that waits for the model asks again after a minute if no worker takes the wait', async () => {
    const { run } = await played({ think: [{ kind: 'waiting', ahead: 3 }, { kind: 'closed' }] })
    const { events } = await run.fetchHistory()
    const limits = events?.flatMap(({ activityTaskScheduledEventAttributes: each }) =>
      each?.activityType?.name === 'awaitSlot' ? [Number(each.scheduleToStartTimeout?.seconds)] : [],
    )
    expect(limits).toEqual([60])
  })

  test('shows what it waits for, and can be found by type, severity, role, target and status', async () => {
    const { run } = await played(oneApproval(), async (run) => {
      await parked(run)
      expect(await run.query(pendingApproval)).toMatchObject({ approvalId: 'apr_1' })
      await run.signal(decided)
    })
    expect((await run.describe()).searchAttributes).toMatchObject({
      IncidentType: ['disk_pressure'],
      Severity: ['warning'],
      Role: ['leader'],
      Target: ['host:h1'],
      Status: ['resolved'],
    })
  })
})

const silent = { warn() {}, info() {} }

describe("Temporal's data of a run", () => {
  const canary = 'hunter2-canary'
  const closedWord = /^[\w.:-]{0,60}$/
  const summary = /^(turn \d+(: \w+)?|a person decides|[A-Z_]+|alert_resolved|cancel)$/

  test('is ids and closed words, also if activities fail with longer messages', async () => {
    const failing = <T>(answer: T) => {
      let attempts = 0
      return async () => {
        attempts += 1
        if (attempts === 1) throw new Error(`no such password: ${canary}`, { cause: new Error(canary) })
        if (attempts === 2) throw new RetryLater('CORE_API_TIMEOUT', 10)
        return answer
      }
    }
    const fail = failing(undefined)
    const scripted = scriptedRun({
      ...oneApproval(),
      think: [calls('execute_migration'), calls('get_node')],
      act: async ({ turn, approvalId }) => {
        if (turn === 1) return approvalId ? { kind: 'verify' } : ask('apr_1', hourMs)
        await fail()
        throw Object.assign(new NonRetryable('ARGUMENTS_LOST'), { cause: canary, stack: canary })
      },
      verify: failing({ kind: 'next' } as const),
    })
    const activities = sanitizeFailures(scripted.activities as never, silent)
    const run = await temporal.working(activities, async (taskQueue) => {
      const started = await start(taskQueue)
      await parked(started)
      await started.signal(decided)
      await started.result()
      return started
    })
    expect(scripted.did).toContain('escalate ACT_FAILED')
    const { payloads, failures, summaries, everything } = spoken(await run.fetchHistory())
    expect(everything).not.toContain(canary)
    expect(failures).toContain('ARGUMENTS_LOST')
    expect(payloads.length).toBeGreaterThan(20)
    expect(payloads.filter((text) => !closedWord.test(text))).toEqual([])
    expect(summaries.filter((text) => !summary.test(text))).toEqual([])
  })
})
