import { expect, test } from '@jest/globals'
import { Client, type Connection, ScheduleOverlapPolicy } from '@temporalio/client'
import { contextActivities } from '../../activities/context.ts'
import { groupActivities, queueActivities } from '../../activities/queue.ts'
import { createApi } from '../../api/app.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { queueScheduleId as scheduleId } from '../../domain/step-key.ts'
import { temporalRuns } from '../../effects/runs.ts'
import { readPrompts } from '../../prompts/render.ts'
import { setUpTemporal } from '../../start/temporal.ts'
import { ensureSchedule, ForeignScheduleError, keepSchedule } from '../../worker/schedule.ts'
import { ensureSearchAttributes } from '../../worker/search-attributes.ts'
import { registerNamespace, temporalAddress } from '../support/broker.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'
import { scriptedRun } from '../support/scripted-run.ts'
import { useTemporal } from '../support/temporal.ts'

// Somebody who may write at Temporal, and the queue's Schedule there.
const database = useDatabase()
const temporal = useTemporal({ cached: 100 })
const options = { taskQueue: 'nightshift', intervalSeconds: 3_600, enabled: true }
const handle = () => temporal.client.schedule.getHandle(scheduleId)
const silent = { debug: () => {}, warn: () => {} } as never
const seen = async () => (await temporalRuns(temporal.client, silent).queue?.(5_000))?.schedule

/** Temporal takes an edit in after it has answered: what a look finds comes to this. */
const found = (what: string, comes: Awaited<ReturnType<typeof keepSchedule>>) =>
  eventually(what, async () => (await keepSchedule(temporal.client, options)) === comes)

test('a deleted or edited Schedule is restored, and only then changed', async () => {
  await ensureSchedule(temporal.client, options)
  await found('nothing', null)
  const edits: Parameters<ReturnType<typeof handle>['update']>[0][] = [
    (previous) => ({ ...previous, spec: { intervals: [{ every: '1 second' }] } }),
    (previous) => ({ ...previous, spec: { ...previous.spec, skip: [{ hour: '*' }] } }),
    (previous) => ({ ...previous, spec: { ...previous.spec, endAt: new Date(Date.now() + 60_000) } }),
    (previous) => ({ ...previous, policies: { ...previous.policies, overlap: ScheduleOverlapPolicy.ALLOW_ALL } }),
    (previous) => ({ ...previous, state: { ...previous.state, remainingActions: 1 } }),
    ...[{ workflowType: 'Mallory' }, { taskQueue: 'mallory' }, { args: ['disk'] }, { workflowId: 'mallory' }].map(
      (change): Parameters<ReturnType<typeof handle>['update']>[0] =>
        (previous) => ({ ...previous, action: { ...previous.action, ...change } }),
    ),
  ]
  for (const [index, edit] of edits.entries()) {
    await handle().update(edit)
    await found(`edit ${index}`, 'edited')
    await found(`nothing after edit ${index}`, null)
  }
  await handle().delete()
  await eventually('it to be gone', async () => (await seen()) === null)
  await found('the deletion', 'deleted')
  await eventually('it to be back', async () => (await seen())?.everySeconds === 3_600)
  expect(await seen()).toMatchObject({ paused: false })
})

test('a namespace of another site is refused and left unchanged, and one of an older build is accepted', async () => {
  await handle()
    .delete()
    .catch(() => {})
  const own = { ...options, site: 'one' }
  await eventually('the Schedule of the first site', async () => {
    await ensureSchedule(temporal.client, own)
    return (await keepSchedule(temporal.client, own)) === null
  })
  const other = { ...options, site: 'other', intervalSeconds: 60 }
  await expect(ensureSchedule(temporal.client, other)).rejects.toBeInstanceOf(ForeignScheduleError)
  await expect(keepSchedule(temporal.client, other)).rejects.toBeInstanceOf(ForeignScheduleError)
  // A caller without a site, as a command without the database, puts it back without taking the
  // mark away.
  await handle().update((previous) => ({ ...previous, spec: { intervals: [{ every: '1 second' }] } }))
  await found('the edit', 'edited')
  await found('nothing', null)
  await expect(keepSchedule(temporal.client, other)).rejects.toBeInstanceOf(ForeignScheduleError)
  expect(await keepSchedule(temporal.client, own)).toBeNull()
  await handle().update((previous) => ({ ...previous, action: { ...previous.action, memo: {} } }))
  await eventually(
    'it to be nobody’s',
    async () => (await keepSchedule(temporal.client, other).catch(() => null)) === 'edited',
  )
  await ensureSchedule(temporal.client, other)
  await eventually('it to be the other one’s', async () => {
    const refused = await keepSchedule(temporal.client, own).catch((error: unknown) => error)
    return refused instanceof ForeignScheduleError
  })
  await handle().delete()
  await eventually('it to be gone', async () => (await seen()) === null)
})

test('a person’s pause stays through everything else, and its note is shown without effect', async () => {
  await ensureSchedule(temporal.client, options)
  await handle().pause('\u202esuoregnad\u001b[2J')
  // An edit is made of what was read before it: it must not be read before the pause is there.
  await eventually('the pause', async () => (await seen())?.paused === true)
  await handle().update((previous) => ({ ...previous, spec: { intervals: [{ every: '1 second' }] } }))
  await found('the edit', 'edited')
  await found('nothing', null)
  expect(await seen()).toMatchObject({ paused: true, note: 'suoregnad', everySeconds: 3_600, nextAt: null })
})

test('with the agent off nothing is claimed, although somebody resumes the Schedule and starts runs by hand', async () => {
  const incidentId = await openedIncident(database.db)
  const deps = { db: database.db, environment: {}, isEnabled: false }
  const { claim } = contextActivities({ ...deps, prompts: readPrompts(), protocol: 'native', model: 'scripted' })
  const { client } = temporal
  const given = queueActivities({ ...deps, client, taskQueue: 'none' })
  const queue = { ...given, ...groupActivities({ ...deps, queue: given }) }
  // It was queued before the agent was switched off.
  await database.owner.updateTable('incident').set({ groupId: 'grp_test' }).where('id', '=', incidentId).execute()
  await temporal.working({ ...scriptedRun().activities, ...queue, claim } as never, async (taskQueue) => {
    await ensureSchedule(client, { ...options, taskQueue, enabled: false })
    await handle().unpause('by mallory')
    expect(
      await client.workflow.execute('ProcessIncidentQueue', { taskQueue, workflowId: scheduleId, args: [] }),
    ).toEqual({
      groups: 0,
      rewoken: 0,
    })
    // A group that somebody wakes ends, instead of starting what claims nothing over and over.
    await client.workflow.execute('InvestigateIncidentGroup', {
      taskQueue,
      workflowId: 'group:disk_pressure',
      args: ['disk_pressure'],
    })
    await client.workflow.execute('InvestigateIncident', {
      taskQueue,
      workflowId: `investigate:${incidentId}:1`,
      args: [{ incidentId, attempt: 1, role: 'leader', groupId: 'grp_test', group: 'group:disk_pressure' }],
    })
  })
  expect(await incidentById(database.db, incidentId)).toMatchObject({
    status: 'open',
    attempt: 0,
    groupId: 'grp_test',
  })
})

test('missing search attributes are reported by readiness, and registered again by the worker', async () => {
  const { connection } = temporal.client
  const namespace = `test-${Date.now()}`
  await registerNamespace(connection, namespace)
  const runs = temporalRuns(new Client({ connection, namespace }), silent)
  const { app } = createApi({ db: database.db, runs })
  const queue = async () =>
    ((await (await app.request('/readyz')).json()) as { checks: { queue: unknown } }).checks.queue
  await eventually('the namespace to be known', async () => (await runs.queue?.(5_000)) !== null)
  expect(await queue()).toMatchObject({
    status: 'failed',
    detail: expect.stringMatching(/Schedule, search attribute IncidentType, .* a worker creates them again/),
  })
  const registered = () => ensureSearchAttributes(connection as Connection, namespace)
  expect(await registered()).toEqual(['IncidentType', 'Severity', 'Target', 'Role', 'Status'])
  await eventually('nothing to be missing', async () => (await registered()).length === 0)
  await ensureSchedule(new Client({ connection, namespace }), options)
  await eventually('readiness to be well', async () => ((await queue()) as { status: string }).status === 'ok')
})

test('a new namespace is set up after the whole server knows it', async () => {
  const namespace = `test-new-${Date.now()}`
  // A server that was asked before keeps it for seconds that there is none.
  await expect(ensureSearchAttributes(temporal.client.connection as Connection, namespace)).rejects.toThrow(namespace)
  await registerNamespace(temporal.client.connection, namespace)
  const settings = { address: await temporalAddress(), namespace, tls: false }
  const rows = await setUpTemporal({ settings, schedule: options, isDryRun: false })
  expect(rows.map(({ state }) => state)).toEqual(['there', 'made', 'made'])
})
