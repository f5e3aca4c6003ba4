import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import pg from 'pg'
import type { Approval } from '../../domain/approval.ts'
import { freshDatabase, registerNamespace } from '../support/broker.ts'
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

describe('an older database', () => {
  // The database comes back as it was earlier, and Temporal knows better. The other way round:
  // `temporal-set-back.test.ts`.
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

  test('after a restore from before a repair each incident continues, and nothing is done twice', async () => {
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
    // Temporal has the end of the first; whether it has that of the other is chance, and the same
    // is to follow.
    await spine.client.workflow.getHandle(`investigate:${claimed.id}:1`).result()
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

describe('an older Temporal', () => {
  // Temporal comes back as it was earlier, or empty, and the database knows better.
  const parts = ['lab', 'runbook', 'api', 'worker'] as const
  const environment = { WATCHDOG_INTERVAL_SECONDS: '1' }
  let stops: (() => Promise<unknown> | unknown)[] = []
  afterEach(async () => {
    for (const stop of stops.reverse()) await stop()
    stops = []
  })

  /**
   * A spine with a Temporal that is set back: stopped, its file replaced by what it was at `keep`,
   * or by nothing.
   */
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

  /**
   * The question of a lost run is taken back, asked again by the next attempt, and what is approved
   * then is done once.
   */
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

  test('after Temporal was emptied, waiting questions are asked again, and new alerts are investigated', async () => {
    const { spine, setBack } = await withOwnTemporal()
    await spine.lab.break('drain', 'host-osl-3')
    const first = await spine.pendingApproval()
    await setBack()
    // As the one who runs that Temporal makes it again; a supervisor starts the worker again.
    await registerNamespace(spine.client.connection, spine.namespace)
    await spine.kill('worker')
    await spine.start('worker')
    await expectAskedAgain(spine, first)
    await spine.lab.break('replication_lag', 'db-osl-1')
    await spine.incident('replication_lag', 'resolved')
    await expectNothingTwice(spine)
  })

  /**
   * What runs wrote of an incident. Its alert ends when it ends, and what is noted of a watched
   * repair is noted later.
   */
  async function ownRows(spine: Spine, incidentId: string): Promise<number[]> {
    const events = await spine.events(incidentId)
    return events.filter(({ kind }) => kind !== 'noted' && kind !== 'alert_received').map(({ seq }) => seq)
  }

  test('if Temporal is older than the database, its lost runs start again, and ended runs stay ended', async () => {
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
