import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { groupActivities, type QueueActivities } from '../../activities/queue.ts'
import type { Db } from '../../db/connect.ts'
import { type Closing, closeIncident } from '../../db/incidents/close-incident.ts'
import { claimIncident, setWaiting } from '../../db/incidents/incidents.ts'
import { hintLeader } from '../../db/incidents/queue.ts'
import type { InvestigationInput } from '../../workflows/investigate.ts'
import type {
  CallOutcome,
  DecideAnswer,
  DecideMessage,
  DecisionStatus,
  EscalationCode,
  Interruption,
  ReceivedDecision,
  SlotWait,
  TurnOutcome,
} from '../../workflows/outcome.ts'

/** What the activities of one run answer: a list is answered one by one, a function is asked. */
export type RunScript = {
  claim?: (input: InvestigationInput) => Promise<{ type: string; severity: string; target: string } | null>
  assembleContext?: () => Promise<{ maxTurns: number; timeBudgetMs: number }>
  think?: TurnOutcome[] | ((turn: number) => Promise<TurnOutcome>)
  awaitSlot?: () => Promise<SlotWait>
  act?: CallOutcome[] | ((place: { turn: number; call: number; approvalId: string | null }) => Promise<CallOutcome>)
  verify?: () => Promise<CallOutcome>
  readDecision?: DecisionStatus[] | (() => Promise<{ status: DecisionStatus; remainingMs: number }>)
  decide?: (message: DecideMessage & { via: string }) => Promise<DecideAnswer>
  isStopWanted?: () => Promise<boolean>
  endEarly?: (why: Interruption) => Promise<boolean>
  escalate?: (code: EscalationCode) => Promise<void>
}

export const calls = (...tools: string[]): TurnOutcome => ({ kind: 'calls', calls: tools })
export const ask = (approvalId: string, expiresInMs: number): CallOutcome => ({ kind: 'ask', approvalId, expiresInMs })
export const hourMs = 3_600_000

/**
 * Stand-ins for the activities of an investigation that follow a script, and what they were asked,
 * in order.
 */
export function scriptedRun(script: RunScript = {}) {
  const did: string[] = []
  const decisions: (DecideMessage & { via: string })[] = []
  const next = <T>(list: T[], last: T): T => list.shift() ?? last
  let status = 'resolved'
  const activities = {
    async claim(input: InvestigationInput) {
      did.push('claim')
      const claimed = script.claim
        ? await script.claim(input)
        : { type: 'disk_pressure', severity: 'warning', target: 'host:h1' }
      if (!claimed) status = 'open'
      return claimed
    },
    async assembleContext() {
      did.push('context')
      return script.assembleContext ? await script.assembleContext() : { maxTurns: 30, timeBudgetMs: hourMs }
    },
    async think({ turn }: { turn: number }) {
      did.push(`think ${turn}`)
      if (typeof script.think === 'function') return await script.think(turn)
      return next(script.think ?? [], { kind: 'closed' })
    },
    async awaitSlot() {
      did.push('await slot')
      return script.awaitSlot ? await script.awaitSlot() : { kind: 'ready' as const }
    },
    async act(place: { turn: number; call: number; approvalId: string | null }) {
      const { turn, call, approvalId } = place
      did.push(`act ${turn}.${call}${approvalId ? ` with ${approvalId}` : ''}`)
      if (typeof script.act === 'function') return await script.act(place)
      return next(script.act ?? [], { kind: 'next' })
    },
    async verify({ turn, call }: { turn: number; call: number }) {
      did.push(`verify ${turn}.${call}`)
      return script.verify ? await script.verify() : { kind: 'next' }
    },
    async readDecision(_incidentId: string, _attempt: number, approvalId: string) {
      did.push(`read ${approvalId}`)
      if (typeof script.readDecision === 'function') return await script.readDecision()
      return { status: next(script.readDecision ?? [], 'approved'), remainingMs: hourMs }
    },
    async decide(_incidentId: string, message: DecideMessage & { via: string }): Promise<DecideAnswer> {
      did.push(`decide ${message.decision} by ${message.via}`)
      decisions.push(message)
      if (script.decide) return await script.decide(message)
      return { outcome: 'recorded', status: message.decision === 'approve' ? 'approved' : 'denied', message: null }
    },
    async decideAll(incidentId: string, _attempt: number, batch: ReceivedDecision[]) {
      const answers: DecideAnswer[] = []
      for (const { door, message } of batch) {
        const forbidden = { outcome: 'forbidden', status: null, message: null }
        answers.push(message ? await activities.decide(incidentId, { ...message, via: door }) : forbidden)
      }
      return answers
    },
    async isStopWanted() {
      did.push('is a stop wanted?')
      return (await script.isStopWanted?.()) ?? true
    },
    async endEarly({ why }: { why: Interruption }) {
      did.push(`end early: ${why}`)
      const ended = script.endEarly ? await script.endEarly(why) : true
      if (ended) status = { cancel: 'cancelled', stopped: 'escalated', alert_resolved: 'resolved' }[why]
      return ended
    },
    async escalate(_incidentId: string, _attempt: number, code: EscalationCode) {
      did.push(`escalate ${code}`)
      await script.escalate?.(code)
      status = 'escalated'
    },
    async closing() {
      did.push('closing')
      return { status, headHash: 'f00d' }
    },
  }
  return { did, decisions, activities }
}

/**
 * A model that thinks until it is stopped; `stopped` settles when the cancellation has reached the
 * activity.
 */
export function endlessThought() {
  const begun = Promise.withResolvers<void>()
  const stopped = Promise.withResolvers<void>()
  async function think(): Promise<TurnOutcome> {
    const signal = cancellationSignal()
    // A beat brings the cancellation back: many, so that the test need not wait.
    const beats = setInterval(() => heartbeat(), 50)
    begun.resolve()
    try {
      return await new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    } finally {
      clearInterval(beats)
      stopped.resolve()
    }
  }
  return { think, begun: begun.promise, stopped: stopped.promise }
}

/** An investigation as its group would start it. */
export function investigation(incidentId = 'inc_1'): InvestigationInput {
  return { incidentId, attempt: 1, role: 'leader', groupId: 'grp_1', group: 'group:disk_pressure' }
}

/**
 * How an investigation goes: it ends as this says, after having waited for a person where `park`
 * says so.
 */
export type Course = { end: 'resolved' | 'escalated'; park?: Promise<unknown> }
export type Investigated = { incidentId: string; role: 'leader' | 'follower'; hintFrom: string | null }

/**
 * The real group activities over a real database, and investigations that only do what a test says,
 * in the rows a real one would change. `order` tells who was claimed when, `mostAtOnce` how many
 * the rows ever called investigating.
 */
export function scriptedGroup(
  db: Db,
  course: (run: Investigated) => Promise<Course>,
  queue: Pick<QueueActivities, 'stampQueue' | 'wakeGroup'> = { stampQueue: async () => [], wakeGroup: async () => {} },
) {
  const order: Investigated[] = []
  const courses = new Map<string, Course>()
  const crew = {
    order,
    mostAtOnce: 0,
    activities: {
      ...groupActivities({ db, environment: {}, queue }),
      async claim(input: { incidentId: string; attempt: number; role: 'leader' | 'follower'; groupId: string }) {
        const workflowId = activityInfo().workflowExecution?.workflowId as string
        const claimed = await db
          .transaction()
          .execute((trx) => claimIncident(trx, { ...input, workflowId, timeBudgetSeconds: 1800 }))
        if (!claimed) return null
        const hintFrom = input.role === 'follower' ? await hintLeader(db, input.groupId) : null
        order.push({ incidentId: input.incidentId, role: input.role, hintFrom })
        crew.mostAtOnce = Math.max(crew.mostAtOnce, await investigating(db, input.groupId))
        return { type: 'disk_pressure', severity: 'warning', target: 'host:h1' }
      },
      async assembleContext() {
        return { maxTurns: 3, timeBudgetMs: hourMs }
      },
      async think({ incidentId, turn }: { incidentId: string; turn: number }): Promise<TurnOutcome> {
        const went =
          courses.get(incidentId) ?? (await course(order.find((run) => run.incidentId === incidentId) as Investigated))
        courses.set(incidentId, went)
        if (went.park && turn === 1) return { kind: 'calls', calls: ['execute_migration'] }
        await close(db, incidentId, went.end)
        return { kind: 'closed' }
      },
      async act({ incidentId, approvalId }: { incidentId: string; approvalId: string | null }): Promise<CallOutcome> {
        if (approvalId) return { kind: 'next' }
        await wait(db, incidentId, true)
        return { kind: 'ask', approvalId: `apr_${incidentId}`, expiresInMs: 250 }
      },
      async readDecision(incidentId: string): Promise<{ status: DecisionStatus; remainingMs: number }> {
        await courses.get(incidentId)?.park
        await wait(db, incidentId, false)
        return { status: 'approved', remainingMs: 0 }
      },
      async endEarly() {
        return true
      },
      async escalate(incidentId: string) {
        await close(db, incidentId, 'escalated')
      },
      async closing(incidentId: string) {
        const row = await db
          .selectFrom('incident')
          .select('status')
          .where('id', '=', incidentId)
          .executeTakeFirstOrThrow()
        return { status: row.status, headHash: null }
      },
    },
  }
  return crew
}

/** Closes an incident as its run would, or, where the run is not asked, as a person does. */
export async function close(db: Db, incidentId: string, status: 'resolved' | 'escalated'): Promise<void> {
  const closing: Closing =
    status === 'resolved'
      ? { status, resolution: 'grew the disk', outcome: 'repaired', claims: [], confidence: null }
      : { status, code: 'MODEL', reason: 'a person has to look' }
  await db
    .transaction()
    .execute((trx) => closeIncident(trx, incidentId, null, closing, { actor: 'user:anna', stepKey: null }))
}

async function wait(db: Db, incidentId: string, waiting: boolean): Promise<void> {
  await db.transaction().execute((trx) => setWaiting(trx, incidentId, waiting))
}

async function investigating(db: Db, groupId: string): Promise<number> {
  const rows = await db
    .selectFrom('incident')
    .select('id')
    .where('groupId', '=', groupId)
    .where('status', '=', 'investigating')
    .execute()
  return rows.length
}
