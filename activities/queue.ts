import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import { startManualChange } from '../clients/manual-change-run.ts'
import { unreadDecisions } from '../db/approvals/settle.ts'
import type { Db } from '../db/connect.ts'
import { cancelUnbegunChange, overdueManualChanges, unbegunManualChanges } from '../db/incidents/manual-change.ts'
import { useUpAttempt } from '../db/incidents/overdue.ts'
import { criticalRoom, type GroupMember, groupState, type Leader, stampQueue } from '../db/incidents/queue.ts'
import { spentCap } from '../db/models/spend.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { withdrawStopped } from '../db/trust/stops.ts'
import { roomForFollowers, waitForLeader } from '../domain/admission.ts'
import { questionType } from '../domain/question.ts'
import { groupWorkflowId, investigationId, type RunRef } from '../domain/step-key.ts'
import type { InvestigationResult } from '../workflows/investigate.ts'
import { decided, wake } from '../workflows/outcome.ts'
import { NonRetryable } from './failures.ts'
import { ownWorkflowId } from './own-run.ts'

type QueueDeps = {
  db: Db
  client: Client
  taskQueue: string
  environment: EnvironmentDefaults
  /**
   * Value of `AGENT_ENABLED`. If false, no incident is taken, even if a person starts the queue.
   */
  isEnabled?: boolean
  log?: { error(fields: object, message: string): void }
}

type Ended = Partial<InvestigationResult> | null

/**
 * Milliseconds within which a started run may still claim; after this time the run no longer counts
 * as starting.
 */
const aboutToClaimMs = 120_000

export type GroupPlan = {
  groupId: string
  start: { incidentId: string; attempt: number; role: 'leader' | 'follower' }[]
  /** Incidents that the group counts as starting, but that rows do not list as open any more. */
  claimed: string[]
  investigating: number
  queued: number
  idle: boolean
  /** Milliseconds until the rows are checked again without a signal; null means the usual time. */
  lookAgainMs: number | null
}

export function queueActivities({ db, client, taskQueue, environment, isEnabled = true, log }: QueueDeps) {
  return {
    /**
     * Assigns groups to incidents; returns the types whose groups to wake. Does nothing while the
     * agent is paused or off.
     */
    async stampQueue(): Promise<string[]> {
      if (!isEnabled) return []
      const settings = await readSettings(db, environment)
      if (settings.value<boolean>('agent.paused') || (await spentCap(db))) return []
      return await stampQueue(db, {
        incidents: settings.value<number>('agent.max_concurrent'),
        critical: settings.value<number>('agent.max_critical'),
        questions: settings.value<number>('agent.max_questions'),
      })
    },

    /** Starts the group of a type, or wakes it if it runs. Doing so twice changes nothing. */
    async wakeGroup(type: string): Promise<void> {
      await client.workflow.signalWithStart('InvestigateIncidentGroup', {
        workflowId: groupWorkflowId(type),
        taskQueue,
        args: [type],
        signal: wake,
        signalArgs: [],
        staticSummary: `incidents of type ${type}`,
      })
    },

    /**
     * Handles a run under this attempt's name that Temporal knows and the rows do not. Either the
     * database was restored from an earlier backup, or somebody started the run by hand. The
     * platform may already have seen the run's keys, so the attempt's number is skipped and the
     * next attempt has unused keys. `start`: nothing happened, and the name is free. `skipped`: the
     * next attempt may begin. `leave`: the rows decide what is next.
     */
    async freeAttempt(incidentId: string, attempt: number): Promise<'start' | 'skipped' | 'leave'> {
      const handle = client.workflow.getHandle(investigationId({ incidentId, attempt }))
      const { status, startTime } = await handle.describe()
      // Leaves a young run alone, because it may be about to claim.
      if (status.name === 'RUNNING' && Date.now() - startTime.getTime() < aboutToClaimMs) return 'leave'
      // Compares `how` and not the status, because after a restore a finished run may also have
      // read the incident as open.
      if (status.name === 'COMPLETED' && ((await handle.result()) as Ended)?.how === 'not_claimed') return 'start'
      return (await useUpAttempt(db, incidentId, attempt)) ? 'skipped' : 'leave'
    },

    /**
     * Wakes runs whose decision nobody has read, so that a lost wake delays a decision by a minute
     * but never loses it. Then starts runs for people's own writes, and cancels such writes that
     * did not begin within ten minutes. Decisions come first, so that nothing delays them.
     */
    async rewakeDecisions(): Promise<number> {
      const unread = await unreadDecisions(db)
      for (const run of unread) await rewake(client, run)
      await inTurn(await overdueManualChanges(db), (id) => cancelUnbegunChange(db, id), log)
      await inTurn(await unbegunManualChanges(db), (id) => startManualChange(client, id, taskQueue), log)
      // Completes a stop whose request was interrupted.
      const withdrawn = await withdrawStopped(db)
      for (const run of withdrawn) await rewake(client, run)
      return unread.length + withdrawn.length
    },
  }
}

export type QueueActivities = ReturnType<typeof queueActivities>

async function rewake(client: Client, { incidentId, attempt }: RunRef): Promise<void> {
  try {
    await client.workflow.getHandle(investigationId({ incidentId, attempt })).signal(decided)
  } catch (error) {
    // Ignores a run that has ended, because the watchdog escalates its incident.
    if (!(error instanceof WorkflowNotFoundError)) throw error
  }
}

/**
 * Acts on each id in turn. A failing write is logged and does not block the others; the next tick
 * retries.
 */
async function inTurn(ids: readonly string[], act: (incidentId: string) => Promise<void>, log: QueueDeps['log']) {
  for (const incidentId of ids) {
    await act(incidentId).catch((error) =>
      log?.error({ incidentId, err: error }, "a person's own write could be neither started nor cancelled"),
    )
  }
}

type GroupDeps = Pick<QueueDeps, 'db' | 'environment' | 'isEnabled'> & {
  /** Activities that assign free slots: `queueActivities` of the same worker. */
  queue: Pick<QueueActivities, 'stampQueue' | 'wakeGroup'>
}

export function groupActivities({ db, environment, queue, isEnabled = true }: GroupDeps) {
  return {
    /**
     * Plans a group's work from the rows alone. Called when one of the group's runs begins, waits
     * or ends, so that a free slot is assigned at once.
     */
    async planGroup(type: string, starting: string[]): Promise<GroupPlan> {
      if (ownWorkflowId() !== groupWorkflowId(type)) throw new NonRetryable('FORGED_GROUP')
      for (const other of await queue.stampQueue()) if (other !== type) await queue.wakeGroup(other)
      const settings = await readSettings(db, environment)
      const state = await groupState(db, type)
      const nothing = {
        groupId: '',
        start: [],
        claimed: starting,
        investigating: 0,
        queued: 0,
        idle: true,
        lookAgainMs: null,
      }
      if (!state || !isEnabled || settings.value<boolean>('agent.paused') || (await spentCap(db))) return nothing

      const open = new Set(state.members.map((member) => member.incidentId))
      const stillStarting = starting.filter((id) => open.has(id))
      const waiting = state.members.filter((member) => !stillStarting.includes(member.incidentId))
      const plan: GroupPlan = {
        groupId: state.groupId,
        start: [],
        claimed: starting.filter((id) => !open.has(id)),
        investigating: state.investigating,
        queued: waiting.length,
        idle: waiting.length === 0 && state.investigating === 0 && stillStarting.length === 0,
        lookAgainMs: null,
      }
      const atWork = state.investigating + stillStarting.length
      if (type === questionType) {
        // Starts each question as a leader, because a question waits for no other run and gets no
        // hint.
        const room = Math.max(0, settings.value<number>('agent.max_questions') - atWork)
        plan.start = waiting.slice(0, room).map((member) => toStart(member, 'leader'))
        return plan
      }
      const { leader } = state
      if (!leader) {
        if (atWork === 0) plan.start = waiting.slice(0, 1).map((member) => toStart(member, 'leader'))
        return plan
      }
      const leaderWaitSeconds = settings.value<number>('agent.leader_wait')
      const waits = waiting.map((member) => ({ member, seconds: secondsUntilReady(member, leader, leaderWaitSeconds) }))
      const next = Math.min(...waits.map(({ seconds }) => seconds).filter((seconds) => seconds > 0))
      if (Number.isFinite(next)) plan.lookAgainMs = Math.ceil(next * 1000) + 50
      const ready = waits.flatMap(({ member, seconds }) => (seconds <= 0 ? [member] : []))
      const critical = ready.filter(({ severity }) => severity === 'critical')
      const others = ready.filter(({ severity }) => severity !== 'critical')
      const limit = settings.value<number>('agent.concurrency', type)
      const left = Math.min(limit - atWork, settings.value<number>('agent.max_followers') - state.followersEverywhere)
      const { max, atWork: claimed } = await criticalRoom(db, settings.value<number>('agent.max_critical'))
      const begun = state.members.filter(
        ({ incidentId, severity }) => severity === 'critical' && stillStarting.includes(incidentId),
      )
      const begin = roomForFollowers({ critical: critical.length, others: others.length }, left, {
        max,
        atWork: claimed + begun.length,
      })
      plan.start = [...critical.slice(0, begin.critical), ...others.slice(0, begin.others)].map((member) =>
        toStart(member, 'follower'),
      )
      return plan
    },
  }
}

/**
 * Returns how many seconds a follower still waits for its leader. If the leader waits for a person,
 * the follower waits at most `leaderWaitSeconds`.
 */
function secondsUntilReady({ severity }: GroupMember, leader: Leader, leaderWaitSeconds: number): number {
  if (leader.status !== 'investigating' && leader.status !== 'awaiting_approval') return 0
  const seconds = waitForLeader(severity, leader) ?? Number.POSITIVE_INFINITY
  return leader.status === 'investigating' ? seconds : Math.min(seconds, leaderWaitSeconds - leader.waitingSeconds)
}

const toStart = ({ incidentId, attempt }: GroupMember, role: 'leader' | 'follower') => ({ incidentId, attempt, role })

export type GroupActivities = ReturnType<typeof groupActivities>
