import { expect, test } from '@jest/globals'
import pino from 'pino'
import { actActivities } from '../../activities/act.ts'
import { approvalActivities } from '../../activities/approvals.ts'
import { contextActivities } from '../../activities/context.ts'
import { sanitizeFailures } from '../../activities/failures.ts'
import { incidentById, setWaiting } from '../../db/incidents/incidents.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { CorePort } from '../../domain/tool.ts'
import { noRuns } from '../../effects/runs.ts'
import { runWatchdogRound } from '../../effects/watchdog.ts'
import { readPrompts } from '../../prompts/render.ts'
import { asked } from '../support/announced.ts'
import { moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { scriptedRun } from '../support/scripted-run.ts'
import { useTemporal } from '../support/temporal.ts'

// A worker of somebody else's on our task queue, which answers activities in place of ours.
// Temporal gives a task to the worker that asks first: here it is the rogue wherever the test says
// so.
const database = useDatabase()
const temporal = useTemporal({ cached: 100 })
const silent = { warn: () => {}, info: () => {} }
/** Requests to the core API. */
const sent: string[] = []
const away = { ok: false, status: 503, problem: { title: 'away', detail: 'away' } } as const
const core: CorePort = {
  get: async () => away,
  async post(path) {
    sent.push(path)
    return away
  },
}

function real() {
  const deps = { db: database.db, environment: {}, core }
  return {
    ...sanitizeFailures(
      contextActivities({ ...deps, prompts: readPrompts(), protocol: 'native', model: 'scripted' }),
      silent,
    ),
    ...sanitizeFailures(actActivities(deps), silent),
    ...sanitizeFailures(approvalActivities(deps), silent),
  }
}

async function investigated(activities: object, incidentId: string): Promise<unknown> {
  return await temporal.working(activities as never, (taskQueue) =>
    temporal.client.workflow.execute('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:1`,
      workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      args: [{ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test', group: 'group:disk_pressure' }],
    }),
  )
}

const kinds = async (incidentId: string) => (await eventsOf(database.db, incidentId)).map(({ kind }) => kind)

test('if a rogue worker answers every task, no row records an action, and the incident still waits to be claimed', async () => {
  const incidentId = await openedIncident(database.db)
  const rogue = scriptedRun({ think: [{ kind: 'calls', calls: ['execute_migration'] }], act: [{ kind: 'closed' }] })
  expect(await investigated(rogue.activities, incidentId)).toMatchObject({ status: 'resolved' })
  expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'open', attempt: 0, outcome: null })
  expect(await kinds(incidentId)).not.toContain('tool_started')
  // The run of ours that comes after it claims it and goes by the rows.
  const { claim } = real()
  const after = scriptedRun({ think: [{ kind: 'closed' }] })
  await investigated({ ...after.activities, claim }, incidentId)
  expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'investigating', attempt: 1 })
})

test('proposals, approvals and reads that a rogue worker invents have no effect on a real activity', async () => {
  const incidentId = await openedIncident(database.db)
  const { claim, act, verify, closing } = real()
  const approval: { id: string | null } = { id: null }
  let acts = 0
  const rogue = scriptedRun({
    think: async (turn) => {
      // A question of ours stands on the incident; the rogue says that it was approved.
      approval.id ??= await asked(database.db, incidentId)
      await database.db.transaction().execute((trx) => setWaiting(trx, incidentId, true))
      return turn < 3 ? { kind: 'calls', calls: ['execute_migration', 'converge_shard'] } : { kind: 'closed' }
    },
    readDecision: ['approved'],
  })
  const worker = {
    ...rogue.activities,
    claim,
    verify,
    closing,
    // The real one, as a rogue has it called: for the approval that nobody gave.
    act: (place: { approvalId: string | null }) => {
      acts += 1
      return act({ ...place, approvalId: approval.id } as never)
    },
  }
  await investigated(worker, incidentId)
  expect(acts).toBeGreaterThan(0)
  expect(sent).toEqual([])
  const rows = await kinds(incidentId)
  for (const kind of ['tool_started', 'tool_finished', 'verification', 'approval_decided'])
    expect(rows).not.toContain(kind)
  const [row] = await database.db
    .selectFrom('approval')
    .select('status')
    .where('id', '=', approval.id ?? '')
    .execute()
  expect(['pending', 'withdrawn']).toContain(row?.status)
})

test('a run that a rogue worker ended is escalated by the watchdog, without any of its claims', async () => {
  const incidentId = await openedIncident(database.db)
  const rogue = scriptedRun({ think: [{ kind: 'calls', calls: ['execute_migration'] }], act: [{ kind: 'closed' }] })
  expect(await investigated({ ...rogue.activities, claim: real().claim }, incidentId)).toMatchObject({
    status: 'resolved',
  })
  const round = () =>
    runWatchdogRound({
      db: database.db,
      locks: database.db,
      runs: noRuns,
      log: pino({ level: 'silent' }),
      metrics: { watchdog: { inc: () => {} } } as never,
    })
  await round()
  expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'investigating' })
  await moveClock(database.owner, '3 hours')
  await round()
  await moveClock(database.owner, '0 minutes')
  expect(await incidentById(database.db, incidentId)).toMatchObject({ status: 'escalated', outcome: null })
  expect((await eventsOf(database.db, incidentId)).find(({ kind }) => kind === 'escalated')).toMatchObject({
    metadata: { code: 'WATCHDOG_SILENT' },
  })
})

test('a decision that a rogue worker swallows decides nothing, and the person can decide again', async () => {
  const incidentId = await openedIncident(database.db)
  const { claim } = real()
  const held: { id: string | null } = { id: null }
  const rogue = scriptedRun({
    think: [{ kind: 'calls', calls: ['execute_migration'] }],
    async act({ approvalId }) {
      if (approvalId) return { kind: 'closed' }
      held.id = await asked(database.db, incidentId)
      return { kind: 'ask', approvalId: held.id, expiresInMs: 3_600_000 }
    },
    decide: async () => ({ outcome: 'recorded', status: 'approved', message: null }),
  })
  await temporal.working({ ...rogue.activities, claim } as never, async (taskQueue) => {
    const run = await temporal.client.workflow.start('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:1`,
      args: [{ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test', group: 'group:disk_pressure' }],
    })
    const said = await run.executeUpdate('decide', {
      args: [{ decision: 'approve', token: 'the token of a person' }],
    })
    expect(said).toMatchObject({ outcome: 'recorded' })
    await run.result()
  })
  expect(
    await database.db
      .selectFrom('approval')
      .select('status')
      .where('id', '=', held.id ?? '')
      .execute(),
  ).toEqual([{ status: 'pending' }])
})
