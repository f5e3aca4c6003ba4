import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import type { FaultName } from '../../lab/state.ts'
import { freshDatabase } from '../support/broker.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { ownTemporal } from '../support/temporal-proxy.ts'

/** Waits until an incident is closed, and answers it. */
const ended = (spine: Spine, id: string) =>
  spine.until(`the end of ${id}`, async () => {
    const incident = await spine.get<{ status: string; attempt: number }>(`/incidents/${id}`)
    return ['resolved', 'escalated'].includes(incident.status) && incident
  })

/** What the lab truly did was done once, and what is stored fits its log. */
async function expectNothingTwice(spine: Spine): Promise<void> {
  const effects = await spine.lab.effects()
  expect(effects.length).toBeGreaterThan(0)
  expect(new Set(effects.map(({ request }) => request)).size).toBe(effects.length)
  expect(effects.every(({ runs }) => runs === 1)).toBe(true)
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [] })
}

describe('set back', () => {
  describe('database set back', () => {
    // The database comes back as it was earlier, and Temporal knows better. The other way round: `temporal-set-back.test.ts`.
    const parts = ['lab', 'runbook', 'api', 'worker'] as const
    const environment = { WATCHDOG_INTERVAL_SECONDS: '1' }
    let stops: (() => Promise<unknown> | unknown)[] = []
    afterEach(async () => {
      for (const stop of stops.reverse()) await stop()
      stops = []
    })

    /** Replaces a database by a copy of another; nobody may be connected to either. */
    async function copyDatabase(url: string, from: string, to: string): Promise<void> {
      const client = new pg.Client({ connectionString: url.replace(/[^/]*$/, 'postgres') })
      await client.connect()
      try {
        await client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [from])
        await client.query(`drop database if exists ${to} with (force)`)
        await client.query(`create database ${to} template ${from}`)
      } finally {
        await client.end()
      }
    }

    test('a database that is restored from before a repair: each incident goes on, and nothing is done twice', async () => {
      const database = await freshDatabase()
      const name = database.url.slice(database.url.lastIndexOf('/') + 1)
      const backup = `${name}_backup`
      const spine = await startSpine({ parts: [...parts], databaseUrl: database.url, environment })
      stops.push(
        () => database.drop(),
        () => spine.stop(),
      )
      await spine.lab.break('replication_lag', 'db-osl-1')
      const claimed = await spine.incident('replication_lag', 'investigating')
      await spine.kill('worker')
      await spine.lab.break('service_down', 'web-osl-1')
      const queued = await spine.incident('service_down', 'open')
      await spine.kill('api')
      await copyDatabase(database.url, name, backup)

      await Promise.all([spine.start('api'), spine.start('worker')])
      await spine.incident('replication_lag', 'resolved')
      await spine.incident('service_down', 'resolved')
      await Promise.all([spine.kill('api'), spine.kill('worker')])
      await copyDatabase(database.url, backup, name)
      await Promise.all([spine.start('api'), spine.start('worker')])

      // The one that was claimed lost its run, the other one the number of its first attempt.
      expect(await ended(spine, claimed.id)).toMatchObject({ attempt: 3 })
      expect(await ended(spine, queued.id)).toMatchObject({ attempt: 2 })
      const codes = [...(await spine.events(claimed.id)), ...(await spine.events(queued.id))].flatMap(
        ({ kind, metadata }) => (kind === 'noted' ? [(metadata as { code: string }).code] : []),
      )
      expect(codes).toEqual(expect.arrayContaining(['run_lost', 'attempt_skipped']))
      await expectNothingTwice(spine)
    })
  })

  describe('temporal set back', () => {
    // Temporal comes back as it was earlier, or empty, and the database knows better.
    const parts = ['lab', 'runbook', 'api', 'worker'] as const
    const environment = { WATCHDOG_INTERVAL_SECONDS: '1' }
    let stops: (() => Promise<unknown> | unknown)[] = []
    afterEach(async () => {
      for (const stop of stops.reverse()) await stop()
      stops = []
    })

    /** A spine with a Temporal that is set back: stopped, its file replaced by what it was at `keep`, or by nothing. */
    async function withOwnTemporal() {
      const directory = temporaryDirectory()
      stops.push(() => directory.remove())
      const temporal = await ownTemporal(directory.path)
      stops.push(() => temporal.stop())
      const spine = await startSpine({ parts: [...parts], temporalAddress: temporal.current.address, environment })
      stops.push(() => spine.stop())
      const kept = join(directory.path, 'kept')
      const files = () => readdirSync(directory.path).filter((file) => file.startsWith('temporal.db'))
      const stopped = async (work: () => void) => {
        await temporal.current.stop()
        work()
        await temporal.again()
      }
      return {
        spine,
        keep: () =>
          stopped(() => {
            mkdirSync(kept, { recursive: true })
            for (const file of files()) copyFileSync(join(directory.path, file), join(kept, file))
          }),
        setBack: () =>
          stopped(() => {
            for (const file of files()) rmSync(join(directory.path, file))
            if (!existsSync(kept)) return
            for (const file of readdirSync(kept)) copyFileSync(join(kept, file), join(directory.path, file))
          }),
      }
    }

    const pending = async (spine: Spine) => (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items

    /** The question of a lost run is taken back, asked again by the next attempt, and what is approved then is done once. */
    async function expectAskedAgain(spine: Spine, first: Approval): Promise<void> {
      const second = await spine.until('the question to be asked again', async () =>
        (await pending(spine)).find(({ id }) => id !== first.id),
      )
      expect(await spine.get(`/approvals/${first.id}`)).toMatchObject({ status: 'withdrawn' })
      const as = { token: spine.tokens.approver }
      const { body } = await spine.post(`/approvals/${second.id}/token`, { decision: 'approve' }, as)
      await spine.post(`/approvals/${second.id}/decision`, { decision: 'approve', token: body.token }, as)
      expect(await ended(spine, first.incidentId)).toMatchObject({ status: 'resolved' })
    }

    test('a Temporal that was emptied: what waited for a person is asked again, and what comes in is investigated', async () => {
      const { spine, setBack } = await withOwnTemporal()
      await spine.lab.break('drain', 'host-osl-3')
      const first = await spine.pendingApproval()
      await setBack()
      // As the one who runs that Temporal makes it again; a supervisor starts the worker again.
      await spine.client.connection.workflowService.registerNamespace({
        namespace: spine.namespace,
        workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
      })
      await spine.kill('worker')
      await spine.start('worker')
      await expectAskedAgain(spine, first)
      await spine.lab.break('replication_lag', 'db-osl-1')
      await spine.incident('replication_lag', 'resolved')
      await expectNothingTwice(spine)
    })

    /** What runs wrote of an incident. Its alert ends when it ends, and what is noted of a watched repair is noted later. */
    async function ownRows(spine: Spine, incidentId: string): Promise<number[]> {
      const events = await spine.events(incidentId)
      return events.filter(({ kind }) => kind !== 'noted' && kind !== 'alert_received').map(({ seq }) => seq)
    }

    test('a Temporal that is older than the database: what it began since is taken up again, what ended stays ended', async () => {
      const { spine, keep, setBack } = await withOwnTemporal()
      await spine.lab.break('replication_lag', 'db-osl-1')
      const { id } = await spine.incident('replication_lag', 'investigating')
      await keep()
      await spine.incident('replication_lag', 'resolved')
      const before = await ownRows(spine, id)
      await spine.lab.break('drain', 'host-osl-3')
      const first = await spine.pendingApproval()
      await setBack()
      await expectAskedAgain(spine, first)
      expect(await spine.get(`/incidents/${id}`)).toMatchObject({ status: 'resolved', attempt: 1 })
      expect(await ownRows(spine, id)).toEqual(before)
      await expectNothingTwice(spine)
    })
  })
})

describe('lasting', () => {
  // What one repair does not end. Everything is broken at once, each on a place of its own, so that the waits pass side by side.
  const places = {
    disk: 'node-web-osl-1a',
    relapse: 'node-web-ams-1a',
    unended: 'node-web-osl-2a',
    backup: 'node-web-ams-2a',
    host: 'host-osl-1',
  }
  let spine: Spine

  beforeAll(async () => {
    spine = await startSpine({
      parts: ['lab', 'runbook', 'api', 'worker'],
      environment: { LAB_WEB_SHARDS: '4', LAB_PACE_SECONDS: '12', WATCHDOG_INTERVAL_SECONDS: '0.5' },
    })
    // A quarter of an hour and four hours at a real site; drift is left to people, so that the backup alone is looked at.
    for (const [key, value] of Object.entries({
      'alert.settle': '2',
      'alert.settle_max': '25',
      // A backup that ends just before the look at it does not end the incident: it comes again every 12 s.
      'alert.quiet': '30',
      'agent.investigate.config_drift': 'none',
      'webhook.resolved.url': 'http://127.0.0.1:9/resolved',
    })) {
      await sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(spine.db)
    }
    await spine.lab.break('relapse', places.relapse)
    await spine.lab.break('unended_alert', places.unended)
    await spine.lab.break('disk_pressure_tenant', places.disk)
    await spine.lab.break('host_lost', places.host)
  })
  afterAll(async () => {
    await spine?.stop()
  })

  /** The incident of one place, once it stands as asked. */
  const about = (type: string, place: string, what: string, isSo: (incident: Incident) => boolean) =>
    spine.until(`${type} on ${place} ${what}`, async () =>
      (await spine.incidents(`?type=${type}`)).find((each) => each.resource?.id === place && isSo(each)),
    )
  const isEscalated = ({ status }: Incident) => status === 'escalated'
  const claims = (events: IncidentEvent[]) => events.filter(({ kind }) => kind === 'claimed').length
  const endings = (events: IncidentEvent[]) =>
    events.flatMap((event) => {
      if (event.kind === 'resolved') return [`resolved ${event.metadata.outcome}`]
      return event.kind === 'escalated' ? [`escalated ${event.metadata.category}`] : []
    })
  const notes = (events: IncidentEvent[], code: string) =>
    events.filter((event) => event.kind === 'noted' && event.metadata.code === code).length
  const failing = async (scenario: FaultName, target: string) =>
    (await spine.lab.oracle(scenario, target)).checks.filter(({ ok }) => !ok).map(({ name }) => name)

  test('a host that stays down while its VMs run elsewhere is mitigated, and people have its alert', async () => {
    const asked = await spine.until('the migration', async () =>
      (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
        ({ tool }) => tool === 'execute_migration',
      ),
    )
    const as = { token: spine.tokens.approver }
    const { body } = await spine.post(`/approvals/${asked.id}/token`, { decision: 'approve' }, as)
    await spine.post(`/approvals/${asked.id}/decision`, { decision: 'approve', token: body.token }, as)
    const incident = await about('host_down', places.host, 'to be handed over', isEscalated)
    expect(incident).toMatchObject({ category: 'mitigated', attempt: 1, alerts: { firing: 1 } })
    const events = await spine.events(incident.id)
    // Said as it is at the first try: nothing was refused on the way.
    expect(events.filter((event) => event.kind === 'call_judged' && event.metadata.verdict === 'refuse')).toEqual([])
    expect(events.find(({ kind }) => kind === 'escalated')).toMatchObject({
      metadata: { report: { nextStep: expect.stringContaining('Repair host-osl-1') } },
    })
    expect(await failing('host_lost', places.host)).toEqual([])
  })

  test('another fault after one that only a person could end is looked at again, and repaired', async () => {
    const first = await about('disk_pressure', places.disk, 'to be handed over', isEscalated)
    expect(first).toMatchObject({ category: 'no_tool' })
    await spine.lab.heal('disk_pressure_tenant', places.disk)
    await about('disk_pressure', places.disk, 'to be quiet', ({ alerts }) => alerts.firing === 0)
    await spine.lab.break('disk_pressure', places.disk)
    const second = await about('disk_pressure', places.disk, 'to be repaired', ({ status }) => status === 'resolved')
    expect(second).toMatchObject({ id: first.id, attempt: 2, outcome: 'repaired' })
    expect(endings(await spine.events(first.id))).toEqual(['escalated no_tool', 'resolved repaired'])
    expect(await failing('disk_pressure', places.disk)).toEqual([])
  })

  test('a notice about nothing wrong is for a person, whose mark ends the next one without a run, until the node looks different', async () => {
    await spine.lab.break('backup_notice', places.backup)
    const isNoFault = ({ status, category }: Incident) => status === 'escalated' && category === 'no_fault_found'
    const first = await about('backup_running', places.backup, 'to be handed over', isNoFault)
    const until = new Date(Date.now() + 3_600_000).toISOString()
    const marked = await spine.post(`/incidents/${first.id}/expected`, { until, reason: 'the nightly backup' })
    expect(marked).toMatchObject({ status: 201, body: { state: { health: 'nominal' } } })
    const before = await spine.get<Incident>(`/incidents/${first.id}`)
    const again = await about(
      'backup_running',
      places.backup,
      'to come again and end as expected',
      ({ outcome, reopened }) => outcome === 'expected' && reopened > before.reopened,
    )
    expect(again).toMatchObject({ id: first.id, attempt: before.attempt, closedBy: 'code' })

    await spine.lab.break('config_drift', places.backup)
    const differed = await about('backup_running', places.backup, 'to be repaired', ({ attempt, status }) => {
      return attempt > before.attempt && status === 'resolved'
    })
    const events = await spine.events(differed.id)
    expect(notes(events, 'not_as_expected')).toBeGreaterThan(0)
    expect(endings(events)).toContain('resolved repaired')
    expect(await failing('backup_notice', places.backup)).toEqual([])
  })

  test('an alert that its sender never ends: people are told once that the repair held, and have it in the end', async () => {
    const incident = await about('service_down', places.unended, 'to be handed over', isEscalated)
    expect(incident).toMatchObject({ category: 'alert_goes_on', attempt: 1, closedBy: 'code' })
    const events = await spine.events(incident.id)
    expect(endings(events)).toEqual(['resolved repaired', 'escalated alert_goes_on'])
    expect(notes(events, 'repair_confirmed')).toBe(1)
    const { rows } = await sql<{ text: string }>`
    select notification->>'reason' as text from delivery
    where incident_id = ${incident.id} and attempt = 1 and notification->>'trigger' = 'watch'`.execute(spine.db)
    expect(rows).toMatchObject([{ text: expect.stringContaining('The repair held, the alert goes on') }])
    expect(await failing('unended_alert', places.unended)).toEqual([])
  })

  test('a repair that does not last is tried three times, and then handed over with each of them', async () => {
    const incident = await about('service_down', places.relapse, 'to be handed over', isEscalated)
    expect(incident).toMatchObject({ category: 'does_not_last', attempt: 3, reopened: expect.any(Number) })
    const events = await spine.events(incident.id)
    expect(claims(events)).toBe(3)
    expect(endings(events)).toEqual([...Array(3).fill('resolved repaired'), 'escalated does_not_last'])
    for (const attempt of [1, 2, 3]) expect(incident.resolution).toContain(`Attempt ${attempt} of ${incident.id}`)
    expect(await failing('relapse', places.relapse)).toEqual([])
  })
})
