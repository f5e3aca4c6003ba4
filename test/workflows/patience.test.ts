import { describe, expect, test } from '@jest/globals'
import type { WorkflowHandle } from '@temporalio/client'
import { NonRetryable, RetryLater, sanitizeFailures } from '../../activities/failures.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { decided } from '../../workflows/outcome.ts'
import { eventually } from '../support/directory.ts'
import { ask, calls, hourMs, investigation, type RunScript, scriptedRun } from '../support/scripted-run.ts'
import { useTemporal } from '../support/temporal.ts'

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
  return await temporal.working(sanitizeFailures(activities as never, { warn() {}, info() {} }), async (taskQueue) => {
    const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:inc_${runs}:1`,
      args: [investigation()],
    })
    await meanwhile(run, did)
    await run.result()
    const { startTime, closeTime } = await run.describe()
    return { did, tookMs: (closeTime?.getTime() ?? 0) - startTime.getTime() }
  })
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

  test('is read again if the clocks of worker and database differ', async () => {
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

  test('that is waited for uses no time of the investigation', async () => {
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

describe('a lasting failure', () => {
  const away = async (): Promise<never> => {
    throw new RetryLater('DATABASE_UNAVAILABLE')
  }

  test('of the context for ten minutes ends in an escalation, and not sooner', async () => {
    const { did, tookMs } = await played({ assembleContext: away })
    expect(did.slice(-2)).toEqual(['escalate CONTEXT_FAILED', 'closing'])
    // By the server's own clock, which skips ahead: what the machine takes besides is seconds.
    expect(Math.floor(tookMs / 600_000)).toBe(1)
  })

  test('of the context that no retry can cure ends in an escalation at once', async () => {
    const broken = async (): Promise<never> => {
      throw new NonRetryable('CONTEXT_BROKEN')
    }
    const { did } = await played({ assembleContext: broken })
    expect(did).toEqual(['claim', 'context', 'escalate CONTEXT_FAILED', 'closing'])
  })

  test('of the context ends no run if the third attempt succeeds', async () => {
    let attempts = 0
    const { did } = await played({
      assembleContext: async () => {
        attempts += 1
        return attempts < 3 ? await away() : { maxTurns: 30, timeBudgetMs: hourMs }
      },
    })
    expect(did).toEqual(['claim', 'context', 'context', 'context', 'think 1', 'closing'])
  })

  test('of the model for a quarter of an hour ends in an escalation, and not sooner', async () => {
    const { did, tookMs } = await played({ think: away })
    expect(did.slice(-2)).toEqual(['escalate MODEL_UNAVAILABLE', 'closing'])
    expect(did.filter((step) => step === 'think 1').length).toBeGreaterThan(10)
    // By the server's own clock. The last attempt that would begin too late is not made.
    expect(Math.round(tookMs / 900_000)).toBe(1)
  })

  test('of the database for hours delays the escalation, and does not prevent it', async () => {
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
