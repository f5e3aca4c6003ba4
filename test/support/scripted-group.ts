import { activityInfo } from '@temporalio/activity'
import { groupActivities, type QueueActivities } from '../../activities/queue.ts'
import { type Closing, closeIncident } from '../../db/closing.ts'
import type { Db } from '../../db/connect.ts'
import { claimIncident, setWaiting } from '../../db/incidents.ts'
import { hintLeader } from '../../db/queue.ts'
import type { Act, DecisionStatus, Thought } from '../../workflows/outcome.ts'
import { hourMs } from './scripted-run.ts'

/** How an investigation goes: it ends as this says, after having waited for a person where `park` says so. */
export type Course = { end: 'resolved' | 'escalated'; park?: Promise<unknown> }
export type Investigated = { incidentId: string; role: 'leader' | 'follower'; hintFrom: string | null }

/**
 * The real group activities over a real database, and investigations that only do what a test says, in the rows a real one
 * would change. `order` tells who was claimed when, `mostAtOnce` how many the rows ever called investigating.
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
      async think({ incidentId, turn }: { incidentId: string; turn: number }): Promise<Thought> {
        const went =
          courses.get(incidentId) ?? (await course(order.find((run) => run.incidentId === incidentId) as Investigated))
        courses.set(incidentId, went)
        if (went.park && turn === 1) return { kind: 'calls', calls: ['execute_migration'] }
        await close(db, incidentId, went.end)
        return { kind: 'closed' }
      },
      async act({ incidentId, approvalId }: { incidentId: string; approvalId: string | null }): Promise<Act> {
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
      : { status, code: 'MODEL', reason: 'a person must look' }
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
