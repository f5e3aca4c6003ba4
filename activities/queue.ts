import { type Client, WorkflowNotFoundError } from '@temporalio/client'
import { unreadDecisions } from '../db/approvals/settle.ts'
import type { Db } from '../db/connect.ts'
import { groupState, stampQueue } from '../db/queue.ts'
import { type EnvironmentDefaults, readSettings } from '../db/settings.ts'
import { decided, wake } from '../workflows/messages.ts'
import { GiveUp } from './failure.ts'
import { ownWorkflowId } from './own-run.ts'

type QueueDeps = {
  db: Db
  client: Client
  taskQueue: string
  maxConcurrent: number
  environment: EnvironmentDefaults
  /** `AGENT_ENABLED`: without it no incident is taken up, also when somebody starts the queue by hand. */
  isEnabled?: boolean
}

export type GroupPlan = {
  groupId: string
  start: { incidentId: string; attempt: number; role: 'leader' | 'follower' }[]
  /** Of the incidents the group believes to be starting, those that are open no more. */
  claimed: string[]
  investigating: number
  queued: number
  idle: boolean
  /** When to look again although nothing was signalled; null means as usual. */
  lookAgainMs: number | null
}

export function queueActivities({ db, client, taskQueue, maxConcurrent, environment, isEnabled = true }: QueueDeps) {
  return {
    /** Stamps groups; answers the types to wake. Nothing while the agent is paused or off. */
    async stampQueue(): Promise<string[]> {
      if (!isEnabled) return []
      const settings = await readSettings(db, environment)
      if (settings.value<boolean>('agent.paused')) return []
      return await stampQueue(db, maxConcurrent)
    },

    /** Starts a type's group or wakes the one that runs: doing it twice is doing it once. */
    async wakeGroup(type: string): Promise<void> {
      await client.workflow.signalWithStart('InvestigateIncidentGroup', {
        workflowId: `group:${type}`,
        taskQueue,
        args: [type],
        signal: wake,
        signalArgs: [],
        staticSummary: `incidents of type ${type}`,
      })
    },

    /** Wakes the runs whose decision nobody has read: a lost wake costs a minute, never a decision. */
    async rewakeDecisions(): Promise<number> {
      const unread = await unreadDecisions(db)
      for (const { incidentId, attempt } of unread) {
        try {
          await client.workflow.getHandle(`investigate:${incidentId}:${attempt}`).signal(decided)
        } catch (error) {
          // The run is gone: the watchdog escalates its incident.
          if (!(error instanceof WorkflowNotFoundError)) throw error
        }
      }
      return unread.length
    },
  }
}

export type QueueActivities = ReturnType<typeof queueActivities>

export function groupActivities({
  db,
  environment,
  isEnabled = true,
}: Pick<QueueDeps, 'db' | 'environment' | 'isEnabled'>) {
  return {
    /** What a group is to start now, from the rows alone. */
    async planGroup(type: string, starting: string[]): Promise<GroupPlan> {
      if (ownWorkflowId() !== `group:${type}`) throw new GiveUp('FORGED_GROUP')
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
      if (!state || !isEnabled || settings.value<boolean>('agent.paused')) return nothing

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
      if (!state.leader) {
        if (atWork === 0) plan.start = waiting.slice(0, 1).map((member) => ({ ...member, role: 'leader' as const }))
        return plan
      }
      if (state.leader.status === 'investigating') return plan
      if (state.leader.status === 'awaiting_approval') {
        const leftSeconds = settings.value<number>('agent.leader_wait') - state.leader.waitingSeconds
        if (leftSeconds > 0) return { ...plan, lookAgainMs: Math.ceil(leftSeconds * 1000) + 50 }
      }
      const limit = settings.value<number>('agent.concurrency', type)
      plan.start = waiting
        .slice(0, Math.max(0, limit - atWork))
        .map((member) => ({ ...member, role: 'follower' as const }))
      return plan
    },
  }
}

export type GroupActivities = ReturnType<typeof groupActivities>
