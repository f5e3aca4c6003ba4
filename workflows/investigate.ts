import { ActivityFailure, ApplicationFailure, defineSearchAttributeKey } from '@temporalio/common'
import {
  ActivityCancellationType,
  allHandlersFinished,
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  isCancellation,
  patched,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow'
import type { ActActivities } from '../activities/act.ts'
import type { ApprovalActivities } from '../activities/approvals.ts'
import type { ContextActivities } from '../activities/context.ts'
import type { ThinkActivities } from '../activities/think.ts'
import { llmTaskQueue } from '../domain/workflow-id.ts'
import { hearing, interruptions } from './hearing.ts'
import { freshProgress, type Ports, type Progress, runLoop } from './loop.ts'
import {
  alertResolved,
  approve,
  type ChildReport,
  cancelInvestigation,
  type DecideAnswer,
  type DecideMessage,
  type DecisionMessage,
  decide,
  decided,
  deny,
  heardAs,
  inBounds,
  type Pending,
  pendingApproval,
  report,
} from './messages.ts'
import type { Act, DecisionStatus, Interruption, LoopEnd } from './outcome.ts'

export type InvestigationInput = {
  incidentId: string
  attempt: number
  role: 'leader' | 'follower'
  groupId: string
  /** Workflow id of the group, told when this run parks, resumes and ends. */
  group: string
  resume?: { progress: Progress; maxTurns: number; timeBudgetMs: number }
}

export type InvestigationResult = { status: string; headHash: string | null }

const rows = proxyActivities<ContextActivities & ApprovalActivities>({
  startToCloseTimeout: '10s',
  scheduleToCloseTimeout: '6h',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})
/** The database may be away for as long as a step may last; the activity itself knows what no retry helps. */
const context = proxyActivities<ContextActivities>({
  startToCloseTimeout: '660s',
  scheduleToCloseTimeout: '660s',
  heartbeatTimeout: '10s',
  retry: { initialInterval: '1s', maximumInterval: '10s' },
})
const world = proxyActivities<ActActivities>({
  startToCloseTimeout: '3h',
  scheduleToCloseTimeout: '1h',
  heartbeatTimeout: '15s',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry: { initialInterval: '500ms', maximumInterval: '10s' },
})

const status = defineSearchAttributeKey('Status', 'KEYWORD')
const role = defineSearchAttributeKey('Role', 'KEYWORD')
const incidentType = defineSearchAttributeKey('IncidentType', 'KEYWORD')
const severity = defineSearchAttributeKey('Severity', 'KEYWORD')
const target = defineSearchAttributeKey('Target', 'KEYWORD')

/** Since 0.2 an alert's end lets the model finish its answer, and the run asks before the first call whether it is still wanted. */
const thinkOn = 'think-on'

/**
 * Since 0.2 decisions are weighed in batches, and nothing is given up for a signal before a row says that a person wants it. Runs
 * that began earlier replay as they went.
 */
const guardedSignals = 'guarded-signals'

/** What a run of version 0.1.0 weighed at most. */
const decisionsPerRun = 200

/** A run that hears no more reads its row this often. */
const pollMs = 30_000
/** So many looks follow their signals at once; later ones leave this much time between them. */
const promptLooks = 20
const betweenLooksMs = 1_000
/** So many signals to stop are looked into while the model thinks; after that the next step looks. */
const stopChecksPerRun = 20

/**
 * One attempt at one incident: claim it, assemble what is known, then turns until it is closed. Anything but a resolution ends
 * in escalation. Nothing is held while a person thinks: the run is a timer and a few handlers.
 */
export async function InvestigateIncident(input: InvestigationInput): Promise<InvestigationResult> {
  const { incidentId, attempt } = input
  const isGuarded = patched(guardedSignals)
  const asked = interruptions(isGuarded)
  let wakes = 0
  let heeded = 0
  let decisions = 0
  let pending: Pending = null
  let thinking: CancellationScope | null = null
  let isStopAsked = false
  let isLookingForStop = false
  let stopChecks = 0

  const interrupt = (why: Interruption) => {
    asked.add(why)
    wakes += 1
    // An answer that is on its way is paid for: only a stop gives it up, and a signal only where a person stands behind it.
    if (why === 'cancel' && isGuarded) void stopThinking()
    else if (why !== 'alert_resolved' || !(isGuarded || patched(thinkOn))) thinking?.cancel()
  }
  // Handlers belong to the run's own scope: without `nonCancellable`, a decision that meets a cancelled run would end it half-way.
  const heard = hearing(
    (batch) => CancellationScope.nonCancellable(() => rows.decideAll(incidentId, attempt, batch)),
    () => {
      wakes += 1
    },
  )
  const apply = async (message: DecideMessage, via: 'signal' | 'update'): Promise<DecideAnswer> => {
    if (isGuarded) {
      return heard.counts() ? await heard.weigh(heardAs(via, message, message.decision)) : tooMany
    }
    decisions += 1
    if (decisions > decisionsPerRun) return tooMany
    const answer = await CancellationScope.nonCancellable(() => rows.decide(incidentId, { ...inBounds(message), via }))
    wakes += 1
    return answer
  }
  const applySignal = async (sent: DecisionMessage, decision: 'approve' | 'deny'): Promise<void> => {
    try {
      if (!isGuarded) await apply({ ...sent, decision }, 'signal')
      else if (heard.counts()) await heard.weigh(heardAs('signal', sent, decision))
    } catch {
      // A signal has nobody to answer, and what fails in its handler would fail the run.
    }
  }
  /** Runs what a signal asks for, unless this run has heard too many. */
  const onSignal = (act: () => void) => () => {
    if (!isGuarded || heard.counts()) act()
  }
  setHandler(decide, (message) => apply(message, 'update'), {
    description: 'Approve or deny what this incident waits for, with a decision token',
    validator: (message) => {
      if (message?.decision !== 'approve' && message?.decision !== 'deny')
        throw new Error('decision must be approve or deny')
      if (typeof message.token !== 'string' || message.token.length > 200)
        throw new Error('token must be a decision token')
    },
  })
  setHandler(approve, (sent) => applySignal(sent, 'approve'))
  setHandler(deny, (sent) => applySignal(sent, 'deny'))
  setHandler(
    decided,
    onSignal(() => {
      wakes += 1
    }),
  )
  setHandler(
    alertResolved,
    onSignal(() => interrupt('alert_resolved')),
  )
  setHandler(
    cancelInvestigation,
    onSignal(() => interrupt('cancel')),
  )
  setHandler(pendingApproval, () => pending)
  CancellationScope.current().cancelRequested.catch(() => interrupt('stopped'))

  return await CancellationScope.nonCancellable(async () => {
    let limits = input.resume
    if (!limits) {
      const claimed = await rows.claim(input)
      if (!claimed) return await finish('not_claimed')
      upsertSearchAttributes([
        { key: incidentType, value: claimed.type },
        { key: severity, value: claimed.severity },
        { key: role, value: input.role },
        { key: target, value: claimed.target },
        { key: status, value: 'investigating' },
      ])
      await tellGroup('resumed')
      const assembled = await assemble()
      if (!assembled) return await escalated({ end: 'escalate', code: 'CONTEXT_FAILED', turn: 0 })
      limits = { progress: freshProgress, ...assembled }
    }
    const { maxTurns, timeBudgetMs, progress } = limits

    const ports: Ports = {
      now: () => Date.now(),
      think: async (turn) => {
        setCurrentDetails(`Turn ${turn} of ${maxTurns}: the model is asked`)
        try {
          thinking = new CancellationScope()
          return await thinking.run(() => think(`turn ${turn}`, incidentId, attempt, turn))
        } catch {
          return { kind: asked.isAny() ? 'interrupted' : 'failed' }
        } finally {
          thinking = null
        }
      },
      waitForModel: async (turn, ahead) => {
        setCurrentDetails(`Turn ${turn} of ${maxTurns}: waits for the model, ${ahead} before it`)
        try {
          thinking = new CancellationScope()
          await thinking.run(() => awaitSlot(`turn ${turn}: wait`, incidentId, attempt))
        } catch {
          // Stopped, or nobody could say: the loop looks again.
        } finally {
          thinking = null
        }
      },
      act: async (turn, call, tool, approvalId) => {
        setCurrentDetails(`Turn ${turn} of ${maxTurns}: ${tool}`)
        return await attempted(() =>
          world.act.executeWithOptions({ summary: `turn ${turn}: ${tool}` }, [
            { incidentId, attempt, turn, call, approvalId },
          ]),
        )
      },
      verify: async (turn, call) => {
        setCurrentDetails(`Turn ${turn} of ${maxTurns}: verifying`)
        return await attempted(() =>
          world.verify.executeWithOptions({ summary: `turn ${turn}: verify` }, [{ incidentId, attempt, turn, call }]),
        )
      },
      waitForDecision: async (approvalId, expiresInMs) => {
        pending = { approvalId, since: Date.now() }
        setCurrentDetails(`Waiting for a person to decide ${approvalId}`)
        upsertSearchAttributes([{ key: status, value: 'awaiting_approval' }])
        await tellGroup('parked')
        const settled = await settledDecision(approvalId, expiresInMs)
        pending = null
        if (settled !== 'interrupted') {
          upsertSearchAttributes([{ key: status, value: 'investigating' }])
          await tellGroup('resumed')
        }
        return settled
      },
      pause: async (waitMs) => {
        setCurrentDetails(`The ending is kept for ${Math.ceil(waitMs / 1000)} s: the alerts must stay quiet`)
        return await quietTime(waitMs)
      },
      interrupted: (turn) => interrupted(turn),
      isStillWanted: async (turn) => !(isGuarded || patched(thinkOn)) || !(await interrupted(turn)),
      breathe: async (soFar) => {
        if (!workflowInfo().continueAsNewSuggested || asked.isAny()) return
        await condition(allHandlersFinished)
        // What came while a handler finished would be lost with this run: the next turn looks into it.
        if (asked.isAny()) return
        await continueAsNew<typeof InvestigateIncident>({
          ...input,
          resume: { progress: soFar, maxTurns, timeBudgetMs },
        })
      },
    }
    try {
      const end = await runLoop(ports, { maxTurns, timeBudgetMs }, progress)
      if (end.end === 'fenced') return await finish('fenced')
      if (end.end === 'escalate') return await escalated(end)
      return await finish('closed')
    } catch (error) {
      if (superseded(error)) return await finish('fenced')
      throw error
    }
  })

  async function assemble(): Promise<{ maxTurns: number; timeBudgetMs: number } | null> {
    try {
      return await context.assembleContext(incidentId, attempt)
    } catch {
      return null
    }
  }

  async function attempted(work: () => Promise<Act>): Promise<Act> {
    try {
      return await work()
    } catch (error) {
      if (isCancellation(error)) throw error
      return { kind: 'failed' }
    }
  }

  /** Sleeps until something was decided; the row says what, and a timer asks it when nobody does. */
  async function settledDecision(approvalId: string, expiresInMs: number): Promise<DecisionStatus | 'interrupted'> {
    let waitMs = expiresInMs
    for (let looks = 1; ; looks += 1) {
      // A wake that came before the wait began counts too: it costs one look at the row.
      await condition(() => wakes > heeded, heard.isDeaf() ? Math.min(waitMs, pollMs) : waitMs, {
        summary: 'a person decides',
      })
      await condition(allHandlersFinished)
      heeded = wakes
      if (await interrupted(0)) return 'interrupted'
      const read = await rows.readDecision(incidentId, attempt, approvalId)
      if (read.status !== 'pending') return read.status
      waitMs = Math.max(250, read.remainingMs)
      if (isGuarded && looks >= promptLooks) await sleep(Math.min(betweenLooksMs, waitMs))
    }
  }

  /** Waits for as long as the alerts have to stay quiet, whatever is signalled meanwhile, unless the run is to end. */
  async function quietTime(waitMs: number): Promise<'over' | 'interrupted'> {
    const until = Date.now() + waitMs
    for (let looks = 1; ; looks += 1) {
      await condition(() => asked.isAny(), Math.max(1, until - Date.now()), { summary: 'the alerts stay quiet' })
      if (await interrupted(0)) return 'interrupted'
      if (!isGuarded || Date.now() >= until) return 'over'
      if (looks >= promptLooks) await sleep(betweenLooksMs)
    }
  }

  async function interrupted(turn: number): Promise<boolean> {
    if (heard.isDeaf()) {
      if (await rows.isStopWanted(incidentId, attempt)) asked.add('cancel')
      asked.add('alert_resolved')
    }
    // Again, for while an alert's end is looked into a person may stop the run: no call is to start in between.
    for (let why = asked.take(); why; why = asked.take()) {
      const ended = await world.endEarly.executeWithOptions({ summary: why }, [{ incidentId, attempt, turn, why }])
      if (ended) return true
    }
    return false
  }

  /** Gives up the model's answer where a person wants the run to stop. One look at a time, and one more for what came meanwhile. */
  async function stopThinking(): Promise<void> {
    isStopAsked = true
    if (isLookingForStop) return
    isLookingForStop = true
    try {
      while (isStopAsked && thinking && stopChecks < stopChecksPerRun) {
        isStopAsked = false
        stopChecks += 1
        const isWanted = await CancellationScope.nonCancellable(() => rows.isStopWanted(incidentId, attempt))
        if (isWanted) thinking?.cancel()
      }
    } catch {
      // The next step looks again.
    } finally {
      isLookingForStop = false
    }
  }

  async function escalated(end: Extract<LoopEnd, { end: 'escalate' }>): Promise<InvestigationResult> {
    await rows.escalate.executeWithOptions({ summary: end.code }, [incidentId, attempt, end.code, end.turn])
    return await finish('escalated')
  }

  async function finish(how: string): Promise<InvestigationResult> {
    await condition(allHandlersFinished)
    const closing = await rows.closing(incidentId)
    upsertSearchAttributes([{ key: status, value: closing.status }])
    setCurrentDetails(`${how}: ${closing.status}`)
    await tellGroup('ended')
    return closing
  }

  /** Best effort: a group that has closed learns the same from the rows. */
  async function tellGroup(what: ChildReport): Promise<void> {
    try {
      await getExternalWorkflowHandle(input.group).signal(report, incidentId, what)
    } catch {
      // The group has ended; nobody waits for this report.
    }
  }
}

const tooMany: DecideAnswer = { outcome: 'refused', status: null, message: 'too many decisions in one run' }

/** A row that was asked for by a run that is not the incident's any more. */
function superseded(error: unknown): boolean {
  return (
    error instanceof ActivityFailure &&
    error.cause instanceof ApplicationFailure &&
    error.cause.type === 'StaleRunError'
  )
}

const models = () =>
  proxyActivities<ThinkActivities>({
    // A separate queue: rate limits hold only where activities are not dispatched eagerly.
    taskQueue: llmTaskQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '330s',
    scheduleToCloseTimeout: '15m',
    heartbeatTimeout: '20s',
    cancellationType: ActivityCancellationType.TRY_CANCEL,
    retry: { initialInterval: '1s', backoffCoefficient: 2, maximumInterval: '1m' },
  })

async function think(summary: string, incidentId: string, attempt: number, turn: number) {
  return await models().think.executeWithOptions({ summary }, [{ incidentId, attempt, turn, mayWait: true }])
}

/** A wait takes no time from the answer: however long the line is, each answer has all of its time. */
async function awaitSlot(summary: string, incidentId: string, attempt: number) {
  const options = { summary, startToCloseTimeout: '1m' as const, scheduleToCloseTimeout: '10m' as const }
  return await models().awaitSlot.executeWithOptions(options, [{ incidentId, attempt }])
}
