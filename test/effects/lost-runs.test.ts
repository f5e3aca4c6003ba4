import { expect, test } from '@jest/globals'
import { Client, Connection } from '@temporalio/client'
import pino from 'pino'
import { queueActivities } from '../../activities/queue.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { actionOf, append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { agentActor } from '../../domain/event.ts'
import { type Runs, temporalRuns } from '../../effects/runs.ts'
import { runWatchdogRound } from '../../effects/watchdog.ts'
import type { InvestigateIncident } from '../../workflows/investigate.ts'
import { asked } from '../support/announced.ts'
import { claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { investigation, type RunScript, scriptedRun } from '../support/scripted-run.ts'
import { newTaskQueue, useTemporal } from '../support/temporal.ts'

const database = useDatabase()
const temporal = useTemporal({ cached: 100 })
const log = pino({ level: 'silent' })

let passedSeconds = 0

/**
 * Rounds of the watchdog, each ten seconds after the one before, all of them after the rows were
 * silent for a while.
 */
async function rounds(count: number, runs: Runs = temporalRuns(temporal.client, log)): Promise<void> {
  const metrics = { watchdog: { inc: () => {} } } as never
  passedSeconds += 20
  for (let round = 0; round < count; round += 1) {
    passedSeconds += 10
    await moveClock(database.owner, `${passedSeconds} seconds`)
    await runWatchdogRound({ db: database.db, locks: database.db, runs, metrics, log })
  }
}

const standing = async (id: string) => {
  const { status, attempt, assignedTo } = (await incidentById(database.db, id)) ?? {}
  return { status, attempt, assignedTo }
}
const started = (incidentId: string, attempt = 1) =>
  temporal.client.workflow.start('InvestigateIncident', {
    taskQueue: newTaskQueue(),
    workflowId: `investigate:${incidentId}:${attempt}`,
    args: [],
  })

test('an incident whose run Temporal does not know is open again after two checks, and not after one', async () => {
  const id = await claimedIncident(database.db)
  await rounds(1)
  expect(await standing(id)).toMatchObject({ status: 'investigating', attempt: 1 })
  await rounds(2)
  expect(await standing(id)).toEqual({ status: 'open', attempt: 2, assignedTo: null })
  expect((await eventsOf(database.db, id)).at(-1)).toMatchObject({ kind: 'noted', metadata: { code: 'run_lost' } })
  // The run that was taken for dead may write nothing more.
  const late = database.db.transaction().execute((trx) =>
    append(trx, id, 1, {
      kind: 'noted',
      actor: agentActor,
      detail: 'late',
      metadata: { code: 'quiet', text: 'late' },
    }),
  )
  await expect(late).rejects.toThrow('attempt 2')
})

test("a lost run's question is withdrawn, and the next attempt asks again", async () => {
  const id = await claimedIncident(database.db)
  const approvalId = await asked(database.db, id)
  await rounds(3)
  expect(await standing(id)).toMatchObject({ status: 'open' })
  const row = database.db.selectFrom('approval').select('status').where('id', '=', approvalId)
  expect(await row.executeTakeFirst()).toEqual({ status: 'withdrawn' })
})

test('a run that is open at Temporal keeps its incident, and one that ended there does not', async () => {
  const [living, ended] = [await claimedIncident(database.db), await claimedIncident(database.db)]
  const [run, over] = [await started(living), await started(ended)]
  await over.terminate()
  await rounds(3)
  expect([(await standing(living)).status, (await standing(ended)).status]).toEqual(['investigating', 'open'])
  await run.terminate()
})

test('an unreachable Temporal, and one without the namespace, say nothing about a run', async () => {
  const id = await claimedIncident(database.db)
  const dead = Connection.lazy({ address: '127.0.0.1:1' })
  await rounds(3, temporalRuns(new Client({ connection: dead }), log))
  const { connection } = temporal.client
  await rounds(3, temporalRuns(new Client({ connection, namespace: 'not-registered' }), log))
  expect(await standing(id)).toMatchObject({ status: 'investigating', attempt: 1 })
})

test('a lost run with a write of unknown outcome goes to a person, and the write is not begun again', async () => {
  const id = await claimedIncident(database.db)
  await database.db.transaction().execute((trx) =>
    append(trx, id, 1, {
      kind: 'tool_started',
      actor: agentActor,
      turn: 1,
      stepKey: `${id}.1:1:tool_started:0`,
      action: actionOf('tool_started', { effect: 'write' }),
      detail: 'converge_shard',
      metadata: {
        callId: 'c1_0',
        tool: 'converge_shard',
        arguments: {},
        effect: 'write',
        targets: [],
        approvalId: null,
      },
    } as never),
  )
  await rounds(3)
  expect(await standing(id)).toMatchObject({ status: 'escalated' })
  const last = (await eventsOf(database.db, id)).findLast(({ kind }) => kind === 'escalated')
  expect(last?.detail).toMatch(/The result of converge_shard is not known/)
})

test('a run that is lost again and again is started at most three times more', async () => {
  const id = await claimedIncident(database.db)
  for (let lost = 0; lost < 4; lost += 1) {
    await rounds(3)
    await database.db
      .updateTable('incident')
      .set({ status: 'investigating', assignedTo: 'x' })
      .where('id', '=', id)
      .where('status', '=', 'open')
      .execute()
  }
  expect(await standing(id)).toMatchObject({ status: 'escalated' })
})

test('an attempt that Temporal remembers and the restored rows lack is skipped, unless it may be about to claim', async () => {
  const { db } = database
  const { freeAttempt } = queueActivities({ db, client: temporal.client, taskQueue: 'nightshift', environment: {} })
  const id = await openedIncident(db)
  const run = await started(id)
  // It may be about to claim.
  expect(await freeAttempt(id, 1)).toBe('leave')
  expect(await standing(id)).toMatchObject({ attempt: 0 })
  await run.terminate()
  expect(await freeAttempt(id, 1)).toBe('skipped')
  expect(await standing(id)).toMatchObject({ status: 'open', attempt: 1 })
  expect((await eventsOf(db, id)).at(-1)).toMatchObject({ attempt: 1, metadata: { code: 'attempt_skipped' } })
})

test('an attempt that worked, and whose end read the restored rows, is skipped, and one that claimed nothing begins again', async () => {
  const { db } = database
  const { freeAttempt } = queueActivities({ db, client: temporal.client, taskQueue: 'nightshift', environment: {} })
  const ended = async (script: RunScript) => {
    const incidentId = await openedIncident(db)
    const { activities } = scriptedRun(script)
    const closing = async () => ({ status: 'open', headHash: null })
    await temporal.working({ ...activities, closing }, async (taskQueue) => {
      const run = await temporal.client.workflow.start<typeof InvestigateIncident>('InvestigateIncident', {
        taskQueue,
        workflowId: `investigate:${incidentId}:1`,
        args: [investigation(incidentId)],
      })
      expect(await run.result()).toMatchObject({ status: 'open' })
    })
    return incidentId
  }
  const unclaimed = await ended({ claim: async () => null })
  expect(await freeAttempt(unclaimed, 1)).toBe('start')
  expect(await standing(unclaimed)).toMatchObject({ attempt: 0 })
  const worked = await ended({})
  expect(await freeAttempt(worked, 1)).toBe('skipped')
  expect(await standing(worked)).toMatchObject({ status: 'open', attempt: 1 })
})
