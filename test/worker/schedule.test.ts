import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from '@jest/globals'
import { Client, type Connection, ScheduleOverlapPolicy } from '@temporalio/client'
import { contextActivities } from '../../activities/context.ts'
import { groupActivities, queueActivities } from '../../activities/queue.ts'
import { createApi } from '../../api/app.ts'
import { incidentById } from '../../db/incidents/incidents.ts'
import { queueScheduleId as scheduleId } from '../../domain/step-key.ts'
import { temporalRuns } from '../../effects/runs.ts'
import { readPrompts } from '../../prompts/render.ts'
import { setUpTemporal } from '../../start/temporal.ts'
import { giveBack } from '../../worker/looks.ts'
import { ensureSchedule, ensureSearchAttributes, keepSchedule } from '../../worker/schedule.ts'
import { temporalAddress } from '../support/broker.ts'
import { openedIncident, useDatabase } from '../support/database.ts'
import { compileCache, eventually, temporaryDirectory } from '../support/directory.ts'
import { scriptedRun } from '../support/scripted-run.ts'
import { startSpine } from '../support/spine.ts'
import { useTemporal } from '../support/temporal.ts'
import { newAuthority, startTemporalProxy } from '../support/temporal-proxy.ts'

describe('schedule', () => {
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

  test('a Schedule that somebody deleted or edited is made again what it should be, and only then', async () => {
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

  test('a pause may be a person’s: it stays through everything else, and is seen with its note made harmless', async () => {
    await ensureSchedule(temporal.client, options)
    await handle().pause('\u202esuoregnad\u001b[2J')
    // An edit is made of what was read before it: it must not be read before the pause is there.
    await eventually('the pause', async () => (await seen())?.paused === true)
    await handle().update((previous) => ({ ...previous, spec: { intervals: [{ every: '1 second' }] } }))
    await found('the edit', 'edited')
    await found('nothing', null)
    expect(await seen()).toMatchObject({ paused: true, note: 'suoregnad', everySeconds: 3_600, nextAt: null })
  })

  test('with the agent off nothing is taken up, although somebody lets the Schedule go on and starts runs by hand', async () => {
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
        ...{ groups: 0, rewoken: 0 },
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

  test('search attributes that are missing are seen by readiness, and registered again by the worker', async () => {
    const { connection } = temporal.client
    const namespace = `test-${Date.now()}`
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    })
    const runs = temporalRuns(new Client({ connection, namespace }), silent)
    const { app } = createApi({ db: database.db, runs })
    const queue = async () =>
      ((await (await app.request('/readyz')).json()) as { checks: { queue: unknown } }).checks.queue
    await eventually('the namespace to be known', async () => (await runs.queue?.(5_000)) !== null)
    expect(await queue()).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(/Schedule, search attribute IncidentType, .* a worker makes them again/),
    })
    const registered = () => ensureSearchAttributes(connection as Connection, namespace)
    expect(await registered()).toEqual(['IncidentType', 'Severity', 'Target', 'Role', 'Status'])
    await eventually('nothing to be missing', async () => (await registered()).length === 0)
    await ensureSchedule(new Client({ connection, namespace }), options)
    await eventually('readiness to be well', async () => ((await queue()) as { status: string }).status === 'ok')
  })

  test('a namespace that was made a moment ago is set up: what sets it up waits until the whole server knows it', async () => {
    const namespace = `test-new-${Date.now()}`
    // A server that was asked before keeps it for seconds that there is none.
    await expect(ensureSearchAttributes(temporal.client.connection as Connection, namespace)).rejects.toThrow(namespace)
    await temporal.client.connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
    })
    const settings = { address: await temporalAddress(), namespace, tls: false }
    const rows = await setUpTemporal({ settings, schedule: options, isDryRun: false })
    expect(rows.map(({ state }) => state)).toEqual(['there', 'made', 'made'])
  })
})

describe('give back', () => {
  test('after a burst the heap of a thread is given back, not only that of the process', async () => {
    const thread = new Worker(
      `const { parentPort } = require('node:worker_threads')
    let burst = Array.from({ length: 1_000_000 }, (_, n) => ({ n }))
    burst = null
    setInterval(() => {}, 1_000)
    parentPort.postMessage('it is over')`,
      { eval: true },
    )
    try {
      await once(thread, 'message')
      const before = await thread.getHeapStatistics()
      await giveBack()
      const after = await thread.getHeapStatistics()
      expect(after.used_heap_size).toBeLessThan(before.used_heap_size / 2)
      expect(after.total_physical_size).toBeLessThan(before.total_physical_size / 2)
    } finally {
      await thread.terminate()
    }
  })
})

describe('temporal', () => {
  test('behind TLS, a client certificate and a key the API and the worker work, and a worker that does not trust says why', async () => {
    const directory = temporaryDirectory()
    const authority = await newAuthority('The site’s authority')
    const own = await authority.issue({ dns: ['nightshift'] })
    const file = (name: string, text: string) => {
      writeFileSync(join(directory.path, name), text, { mode: 0o600 })
      return join(directory.path, name)
    }
    const proxy = await startTemporalProxy(await temporalAddress(), {
      pair: await authority.issue({ dns: ['localhost'] }),
      clientAuthority: authority.certificate,
      apiKey: 'key-of-the-site',
    })
    const toml = [
      '[profile.site]',
      `address = "localhost:${proxy.port}"`,
      '[profile.site.tls]',
      `server_ca_cert_path = "${file('ca.pem', authority.certificate)}"`,
      `client_cert_path = "${file('own.pem', own.certificate)}"`,
      `client_key_path = "${file('own.key', own.key)}"`,
    ]
    const environment = {
      // Empty is not set: the profile says where.
      TEMPORAL_ADDRESS: '',
      TEMPORAL_CONFIG_FILE: file('temporal.toml', toml.join('\n')),
      TEMPORAL_PROFILE: 'site',
      TEMPORAL_API_KEY_FILE: file('api.key', 'key-of-the-site\n'),
    }
    const spine = await startSpine({ parts: ['api'], environment })
    try {
      const other = file('other.pem', (await newAuthority('Other')).certificate)
      const distrusting = { ...environment, DATABASE_URL: spine.databaseUrl, TEMPORAL_TLS_SERVER_CA_CERT_PATH: other }
      const { code, printed } = await endOf('worker/main.ts', distrusting)
      expect(code).toBe(1)
      expect(printed).toContain('which TEMPORAL_TLS_SERVER_CA_CERT_PATH does not vouch for')
      await spine.start('worker')
      const { checks } = (await (await fetch(`${spine.url}/readyz`)).json()) as { checks: Record<string, unknown> }
      expect(checks.temporal).toMatchObject({ status: 'ok' })
      await spine.post('/ingest/generic', { title: 'Backup failed' }, { token: spine.tokens.ingest })
      await spine.until('the incident to be claimed', async () => (await spine.incidents())[0]?.status !== 'open')
      expect(spine.printed()).not.toContain('key-of-the-site')
    } finally {
      await spine.stop()
      await proxy.stop()
    }
  })

  async function endOf(entry: string, env: Record<string, string>): Promise<{ code: number; printed: string }> {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entry], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: compileCache, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let printed = ''
    child.stdout.on('data', (bytes) => {
      printed += bytes
    })
    const [code] = await once(child, 'close')
    return { code, printed }
  }
})
