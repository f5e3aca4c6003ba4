import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import type { WorkflowHandle } from '@temporalio/client'
import { NonRetryable, RetryLater, sanitizeFailures } from '../../activities/failures.ts'
import { stampQueue } from '../../db/incidents/queue.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { type Limits, type Ports, runLoop } from '../../workflows/loop.ts'
import {
  type Act,
  approve,
  cancelInvestigation,
  type DecisionStatus,
  decided,
  type Thought,
} from '../../workflows/outcome.ts'
import type { InvestigationInput } from '../../workflows/run.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import {
  ask,
  calls,
  close,
  hourMs,
  investigation,
  type RunScript,
  scriptedGroup,
  scriptedRun,
} from '../support/scripted-run.ts'
import { useTemporal } from '../support/temporal.ts'

describe('loop', () => {
  const calls = (...tools: string[]): Thought => ({ kind: 'calls', calls: tools })
  const ask = (approvalId: string): Act => ({ kind: 'ask', approvalId, expiresInMs: 1000 })

  type Script = {
    thoughts: Thought[]
    acts?: Act[]
    decisions?: (DecisionStatus | 'interrupted')[]
    verifications?: Act[]
    interruptedAt?: number
    turnMs?: number
  }

  /** Plays a script over the ports and writes down what the loop did. */
  function played(script: Script) {
    const did: string[] = []
    let clockMs = 0
    const next = <T>(list: T[] | undefined, fallback: T): T => list?.shift() ?? fallback
    const ports: Ports = {
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

  async function end(script: Script, limits: Limits = { maxTurns: 3, timeBudgetMs: 60_000 }) {
    const { did, ports } = played(script)
    return { end: await runLoop(ports, limits), did }
  }

  describe('an investigation', () => {
    test('an ending that comes too early is kept: the run waits, costs no budget, and is judged again', async () => {
      const waited = { kind: 'wait', waitMs: 100_000 } as const
      const script = { thoughts: [calls('resolve_incident')], acts: [waited, waited, { kind: 'closed' } as const] }
      const { end: how, did } = await end(script, { maxTurns: 3, timeBudgetMs: 1_000 })
      expect(how).toEqual({ end: 'closed' })
      expect(did.slice(1)).toEqual([
        ...['act 1.0 resolve_incident', 'pause 100000', 'act 1.0 resolve_incident', 'pause 100000'],
        'act 1.0 resolve_incident',
      ])
    })

    test('an hour in the line for the model costs neither a turn nor any of the time budget', async () => {
      const waiting = (ahead: number): Thought => ({ kind: 'waiting', ahead })
      const script = { thoughts: [waiting(3), waiting(1), calls('get_shard'), { kind: 'closed' } as const] }
      const { end: how, did } = await end(script, { maxTurns: 2, timeBudgetMs: 1_000 })
      expect(how).toEqual({ end: 'closed' })
      expect(did).toEqual([
        ...['think 1', 'wait 1 behind 3', 'think 1', 'wait 1 behind 1'],
        ...['think 1', 'act 1.0 get_shard', 'think 2'],
      ])
    })

    test('calls run in the order the model gave, and a write is verified before the next', async () => {
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

    test('a withdrawn approval is judged again without one, and what is asked again is waited for', async () => {
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

    test('a denied call is over: the model goes on with the next turn', async () => {
      const { did } = await end({
        thoughts: [calls('execute_migration'), { kind: 'closed' }],
        acts: [ask('a1')],
        decisions: ['denied'],
      })
      expect(did).toEqual(['think 1', 'act 1.0 execute_migration', 'wait a1', 'think 2'])
    })

    test('three days of waiting for a person use up no time budget', async () => {
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
      [
        'three answers in a row cannot be used',
        { thoughts: Array(3).fill({ kind: 'correction' }) },
        'CORRECTION_LIMIT',
      ],
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

    test('an answer that could not be used takes no turn, and three in a row still end the run', async () => {
      const bad: Thought = { kind: 'correction' }
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
      const bad: Thought = { kind: 'correction' }
      const thoughts = [bad, calls('x'), bad, calls('x'), bad, calls('x'), bad, calls('x'), bad, calls('x'), bad]
      expect((await end({ thoughts }, { maxTurns: 30, timeBudgetMs: 60_000 })).end).toMatchObject({
        code: 'CORRECTION_LIMIT',
        turn: 11,
      })
    })

    test('a run that was superseded stops without a word', async () => {
      expect((await end({ thoughts: [{ kind: 'fenced' }] })).end).toEqual({ end: 'fenced' })
      expect((await end({ thoughts: [calls('x')], acts: [{ kind: 'fenced' }] })).end).toEqual({ end: 'fenced' })
    })

    test('an interruption between two calls ends it before the second', async () => {
      const { end: ended, did } = await end({ thoughts: [calls('a', 'b')], interruptedAt: 1 })
      expect(ended).toEqual({ end: 'closed' })
      expect(did).toEqual(['think 1', 'act 1.0 a'])
    })

    test('a question put off by an interruption that came to nothing is asked again as the same turn', async () => {
      const { did } = await end({ thoughts: [{ kind: 'interrupted' }, { kind: 'closed' }] })
      expect(did).toEqual(['think 1', 'think 1'])
    })

    test('a run that continues as new goes on with its turn, its time and its corrections', async () => {
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
})

describe('patience', () => {
  describe('afresh', () => {
    // Temporal asks for a fresh run after this few events, which a real one reaches after hundreds of turns.
    const temporal = useTemporal({ continueAsNewAfterEvents: 30, cached: 10 })

    type Run = WorkflowHandle<typeof InvestigateIncident>
    let incidents = 0

    async function played(
      script: RunScript,
      meanwhile: (run: Run, did: string[]) => Promise<unknown> = async () => {},
    ) {
      const { activities, did } = scriptedRun(script)
      incidents += 1
      return await temporal.working(activities, async (taskQueue) => {
        const workflowId = `investigate:inc_${incidents}:1`
        const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
          taskQueue,
          workflowId,
          args: [investigation()],
        })
        await meanwhile(run, did)
        await run.result()
        const last = temporal.client.workflow.getHandle(workflowId)
        const { runId } = await last.describe()
        const [started] = (await last.fetchHistory()).events ?? []
        const [given] = started?.workflowExecutionStartedEventAttributes?.input?.payloads ?? []
        const { resume } = JSON.parse(Buffer.from(given?.data ?? '').toString()) as InvestigationInput
        return { did, afresh: runId !== run.firstExecutionRunId, resume }
      })
    }

    test('a long run goes on afresh with the next turn, and ends at the limit of turns', async () => {
      const { did, afresh } = await played({
        think: Array.from({ length: 30 }, () => calls('get_node')),
        assembleContext: async () => ({ maxTurns: 12, timeBudgetMs: hourMs }),
      })
      expect(afresh).toBe(true)
      const turns = Array.from({ length: 12 }, (_, index) => `think ${index + 1}`)
      expect(did.filter((step) => step.startsWith('think'))).toEqual(turns)
      expect(did.filter((step) => step === 'claim' || step === 'context')).toEqual(['claim', 'context'])
      expect(did.slice(-2)).toEqual(['escalate TURN_LIMIT', 'closing'])
    })

    test('a fresh run forgets no correction', async () => {
      const correction: Thought = { kind: 'correction' }
      const { did, afresh } = await played({
        think: Array.from({ length: 30 }, (_, index) => (index % 2 === 0 ? correction : calls('get_node'))),
      })
      expect(afresh).toBe(true)
      expect(did.slice(-3)).toEqual(['think 11', 'escalate CORRECTION_LIMIT', 'closing'])
    })

    test('a fresh run forgets no time that was worked', async () => {
      let turns = 0
      const { afresh, resume } = await played({
        think: async () => {
          turns += 1
          await sleep(250)
          return turns > 6 ? { kind: 'closed' } : calls('get_node')
        },
      })
      expect(afresh).toBe(true)
      const { turn, workedMs } = resume!.progress
      expect(turn).toBeGreaterThan(1)
      // What a model and a tool took beyond that is the machine's.
      expect(workedMs).toBeGreaterThanOrEqual(turn * 240)
    })

    test('a stop that comes while a decision is being judged is not lost with the old run', async () => {
      const judging = Promise.withResolvers<void>()
      let judged = false
      const { did } = await played(
        {
          think: async () => calls('get_node'),
          decide: async () => {
            judged = true
            await judging.promise
            return { outcome: 'refused', status: null, message: null }
          },
        },
        async (run) => {
          await run.signal(approve, { token: 'tok_1' })
          // The run wants to go on afresh, and waits for its handler: it has nothing else under way.
          await eventually('the run to pause', async () => {
            const { pendingActivities, pendingWorkflowTask } = (await run.describe()).raw
            return !pendingWorkflowTask && pendingActivities?.length === 1 && judged
          })
          await run.signal(cancelInvestigation)
          judging.resolve()
        },
      )
      expect(did.slice(-2)).toEqual(['end early: cancel', 'closing'])
    })
  })

  describe('lost report', () => {
    const database = useDatabase()
    const temporal = useTemporal({ timeSkipping: true, cached: 10 })

    test('a group that is told nothing looks at the rows by itself within half a minute', async () => {
      const incidents: string[] = []
      for (let index = 0; index < 3; index += 1) {
        incidents.push(await openedIncident(database.db, { labels: { incident_type: 'disk_pressure' } }))
      }
      await stampQueue(database.db, 3)
      const crew = scriptedGroup(database.db, async ({ role }) =>
        role === 'leader' ? { end: 'resolved', park: Promise.resolve() } : { end: 'resolved' },
      )
      // The leader waits for a person for a week, and reports nothing when somebody closes its incident.
      const { act } = crew.activities
      crew.activities.act = async (place) => ({ ...(await act(place)), expiresInMs: 7 * 24 * hourMs }) as never
      const waits = await temporal.working(crew.activities, async (taskQueue) => {
        const group = await temporal.client.workflow.start('InvestigateIncidentGroup', {
          taskQueue,
          workflowId: 'group:disk_pressure',
          args: ['disk_pressure'],
        })
        const leader = temporal.client.workflow.getHandle(`investigate:${incidents[0]}:1`)
        await eventually('the leader to wait', async () => {
          const row = await database.db
            .selectFrom('incident')
            .select('status')
            .where('id', '=', incidents[0] as string)
            .executeTakeFirst()
          return row?.status === 'awaiting_approval'
        })
        await eventually('its report', async () => {
          const { events } = await group.fetchHistory()
          return events?.filter((event) => event.workflowExecutionSignaledEventAttributes).length === 2
        })
        await close(database.db, incidents[0] as string, 'resolved')
        await group.result()
        const { events } = await group.fetchHistory()
        await leader.terminate('the test is over')
        return (events ?? []).flatMap(
          ({ timerStartedEventAttributes: timer }) => timer?.startToFireTimeout?.seconds ?? [],
        )
      })
      expect(crew.order.slice(1).map((run) => run.hintFrom)).toEqual([incidents[0], incidents[0]])
      // No wait of the group is longer, whatever its rows said.
      expect(Math.max(...waits.map(Number))).toBe(30)
    })
  })

  describe('patience', () => {
    const temporal = useTemporal({ timeSkipping: true, cached: 10 })

    type Run = WorkflowHandle<typeof InvestigateIncident>
    const dayMs = 24 * hourMs
    let runs = 0

    /** Plays a run to its end, and answers how long it took by the clock that skips ahead. */
    async function played(
      script: RunScript,
      meanwhile: (run: Run, did: string[]) => Promise<unknown> = async () => {},
    ): Promise<{ did: string[]; tookMs: number }> {
      const { activities, did } = scriptedRun(script)
      runs += 1
      return await temporal.working(
        sanitizeFailures(activities as never, { warn() {}, info() {} }),
        async (taskQueue) => {
          const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
            taskQueue,
            workflowId: `investigate:inc_${runs}:1`,
            args: [investigation()],
          })
          await meanwhile(run, did)
          await run.result()
          const { startTime, closeTime } = await run.describe()
          return { did, tookMs: (closeTime?.getTime() ?? 0) - startTime.getTime() }
        },
      )
    }

    const oneApproval = (expiresInMs: number): RunScript => ({
      think: [calls('execute_migration'), { kind: 'closed' }],
      act: [ask('apr_1', expiresInMs), { kind: 'verify' }],
    })
    const asked = (did: string[]) => eventually('the question', async () => did.includes('act 1.0'))

    describe('an approval', () => {
      test('that is given after three days still runs', async () => {
        const { did, tookMs } = await played(oneApproval(7 * dayMs), async (run, did) => {
          await asked(did)
          await temporal.skip(3 * dayMs)
          await run.signal(decided)
        })
        expect(did.slice(-5)).toEqual(['read apr_1', 'act 1.0 with apr_1', 'verify 1.0', 'think 2', 'closing'])
        expect(tookMs / dayMs).toBeCloseTo(3, 1)
      })

      test('that everybody forgets ends in an escalation', async () => {
        const { did, tookMs } = await played({ ...oneApproval(7 * dayMs), readDecision: ['expired'] })
        expect(did.slice(-3)).toEqual(['read apr_1', 'escalate APPROVAL_EXPIRED', 'closing'])
        expect(tookMs / dayMs).toBeCloseTo(7, 1)
      })

      test('whose wake was lost is read from its row when the time is up, and runs', async () => {
        const { did } = await played({ ...oneApproval(2 * dayMs), readDecision: ['approved'] })
        expect(did).toContain('act 1.0 with apr_1')
      })

      test('is asked for again when the clocks of worker and database differ', async () => {
        const clocks = [
          { status: 'pending' as const, remainingMs: 0 },
          { status: 'pending' as const, remainingMs: -20 },
          { status: 'expired' as const, remainingMs: 0 },
        ]
        const { did } = await played({
          ...oneApproval(hourMs),
          readDecision: async () => clocks.shift() ?? { status: 'expired', remainingMs: 0 },
        })
        expect(did.filter((step) => step === 'read apr_1')).toHaveLength(3)
        expect(did).toContain('escalate APPROVAL_EXPIRED')
      })

      test('that is waited for uses up no time of the investigation', async () => {
        const { did } = await played(
          {
            ...oneApproval(7 * dayMs),
            assembleContext: async () => ({ maxTurns: 30, timeBudgetMs: 10 * 60_000 }),
            think: [calls('execute_migration'), calls('get_node'), { kind: 'closed' }],
          },
          async (run, did) => {
            await asked(did)
            await temporal.skip(dayMs)
            await run.signal(decided)
          },
        )
        expect(did.slice(-4)).toEqual(['think 2', 'act 2.0', 'think 3', 'closing'])
      })
    })

    describe('what keeps failing', () => {
      const away = async (): Promise<never> => {
        throw new RetryLater('DATABASE_UNAVAILABLE')
      }

      test('context that cannot be had for ten minutes ends in an escalation, and not sooner', async () => {
        const { did, tookMs } = await played({ assembleContext: away })
        expect(did.slice(-2)).toEqual(['escalate CONTEXT_FAILED', 'closing'])
        // By the server's own clock, which skips ahead: what the machine takes besides is seconds.
        expect(Math.floor(tookMs / 600_000)).toBe(1)
      })

      test('context that no retry can bring ends in an escalation at once', async () => {
        const broken = async (): Promise<never> => {
          throw new NonRetryable('CONTEXT_BROKEN')
        }
        const { did } = await played({ assembleContext: broken })
        expect(did).toEqual(['claim', 'context', 'escalate CONTEXT_FAILED', 'closing'])
      })

      test('context that can be had at the third attempt is enough', async () => {
        let attempts = 0
        const { did } = await played({
          assembleContext: async () => {
            attempts += 1
            return attempts < 3 ? await away() : { maxTurns: 30, timeBudgetMs: hourMs }
          },
        })
        expect(did).toEqual(['claim', 'context', 'context', 'context', 'think 1', 'closing'])
      })

      test('a model that is gone for a quarter of an hour ends in an escalation, and not sooner', async () => {
        const { did, tookMs } = await played({ think: away })
        expect(did.slice(-2)).toEqual(['escalate MODEL_UNAVAILABLE', 'closing'])
        expect(did.filter((step) => step === 'think 1').length).toBeGreaterThan(10)
        // By the server's own clock. The last attempt that would begin too late is not made.
        expect(Math.round(tookMs / 900_000)).toBe(1)
      })

      test('a database that is away for hours costs hours, not the escalation', async () => {
        let attempts = 0
        const { did } = await played({
          think: [{ kind: 'failed' }],
          escalate: async () => {
            attempts += 1
            if (attempts < 400) await away()
          },
        })
        expect(did.filter((step) => step === 'escalate MODEL_UNAVAILABLE')).toHaveLength(400)
        expect(did.at(-1)).toBe('closing')
      })
    })
  })
})
