import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import pg from 'pg'
import { type Api, createApi } from '../../api/app.ts'
import { createToken, ensureOperator } from '../../db/access/tokens.ts'
import { connect, type Db } from '../../db/connect.ts'
import { waitOf } from '../../db/incidents/waits.ts'
import type { Approval } from '../../domain/approval.ts'
import type { IncidentEvent } from '../../domain/event.ts'
import type { Incident } from '../../domain/incident.ts'
import { migrateToLatest } from '../../migrations/migrate.ts'
import { type Postgres, startPostgres } from '../../start/postgres.ts'
import { giveBack } from '../../start/process.ts'
import { moveClock } from '../support/database.ts'
import { temporaryDirectory } from '../support/directory.ts'
import { type Spine, startSpine } from '../support/spine.ts'
import { freeze, ownTemporal } from '../support/temporal-proxy.ts'

describe('parts away', () => {
  describe('parts away', () => {
    /** Two minutes by hand (`MODEL_DOWN_SECONDS=120 npm test -- test/failure/parts-away`); else as long as two tries take. */
    const downMs = Number(process.env.MODEL_DOWN_SECONDS ?? '0') * 1000
    let spine: Spine

    beforeAll(async () => {
      spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
    })
    afterAll(async () => {
      await spine?.stop()
    })

    test('a model that is down for a while costs that while: each try is a row, and the investigation goes on', async () => {
      await spine.kill('runbook')
      await spine.lab.break('service_down', 'web-osl-1')
      const incident = await spine.incident('service_down', 'investigating')
      const failures = async () => (await spine.events(incident.id)).filter((event) => event.kind === 'model_failed')
      await sleep(downMs)
      await spine.until('two tries', async () => (await failures()).length >= 2)
      expect((await spine.incident('service_down')).status).toBe('investigating')
      await spine.start('runbook')
      await spine.incident('service_down', 'resolved')
      expect((await failures())[0]).toMatchObject({ metadata: { code: 'unavailable' } })
      await spine.turnThePage()
    })

    /** What the run itself wrote: alerts come when they come, and what is noted about a repair that is watched is noted later. */
    const ownSteps = (events: IncidentEvent[]) =>
      events
        .filter(({ kind }) => !kind.startsWith('alert') && kind !== 'noted')
        .map(({ kind, metadata }) => `${kind} ${(metadata as { tool?: string }).tool ?? ''}`)

    test('a core API that is away for 20 s in the middle of an investigation changes nothing in how it ends', async () => {
      await spine.lab.break('replication_lag', 'db-osl-1')
      const { id } = await spine.incident('replication_lag', 'investigating')
      await spine.kill('api')
      const waits = await spine.until('the step to say what it waits for', () => waitOf(spine.db, id))
      expect(waits).toMatchObject({ for: 'core_api' })
      // Temporal shows it as soon as the SDK sends the next beat.
      const awayFor = sleep(20_000)
      await spine.until('the heartbeat to say the same', async () => {
        const { pendingActivities } = (await spine.client.workflow.getHandle(`investigate:${id}:1`).describe()).raw
        const beats = (pendingActivities ?? []).flatMap(({ heartbeatDetails }) => heartbeatDetails?.payloads ?? [])
        return beats.some(({ data }) => Buffer.from(data ?? []).includes('core_api'))
      })
      await awayFor
      await spine.start('api')
      await spine.incident('replication_lag', 'resolved')
      const events = await spine.events(id)
      expect(events.filter((event) => JSON.stringify(event.metadata).includes('UNANSWERED'))).toEqual([])
      const converged = (await spine.effects()).filter(({ request }) => request.includes('converge'))
      expect(converged).toMatchObject([{ runs: 1 }])
      // The same steps as those of an incident whose core API was there.
      await spine.lab.heal()
      await spine.lab.break('replication_lag', 'db-ams-1')
      const undisturbed = await spine.until('the other incident', async () =>
        (await spine.incidents('?type=replication_lag&status=resolved')).find((each) => each.id !== id),
      )
      expect(ownSteps(events)).toEqual(ownSteps(await spine.events(undisturbed.id)))
      expect(await spine.get(`/incidents/${id}`)).toMatchObject({ waits: null })
      await spine.turnThePage()
    })

    const isOver = ({ status }: Incident) => ['resolved', 'escalated'].includes(status)
    const ended = (host: string) =>
      spine.until(`the end of ${host}`, async () =>
        (await spine.incidents()).find((incident) => incident.resource?.id === host && isOver(incident)),
      )

    async function approve(approval: Approval): Promise<void> {
      const as = { token: spine.tokens.approver }
      const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
      await spine.post(`/approvals/${approval.id}/decision`, { decision: 'approve', token: body.token }, as)
    }

    test('the API is killed while a plan is carried out: it goes on when the API is back, and no VM moves twice', async () => {
      await spine.lab.break('drain', 'host-osl-3')
      const asked = await spine.pendingApproval()
      await approve(asked)
      await spine.until('the first step to begin', async () =>
        (await spine.events(asked.incidentId)).some(({ kind }) => kind === 'step_started'),
      )
      await spine.kill('api')
      await spine.start('api')
      expect(await ended('host-osl-3')).toMatchObject({ status: 'resolved' })
      expect(await spine.lab.oracle('drain', 'host-osl-3')).toMatchObject({ healthy: true })
      const moves = (await spine.effects()).filter(({ request }) => request.includes('/migrate '))
      expect(moves.length).toBeGreaterThan(1)
      expect(new Set(moves.map(({ request }) => request)).size).toBe(moves.length)
      expect(moves.every(({ runs }) => runs === 1)).toBe(true)
      const rows = (await spine.events(asked.incidentId)).filter(({ kind }) => kind === 'step_finished')
      expect(rows).toHaveLength(moves.length)
      await spine.turnThePage()
    })

    test('a host dies while its plan waits for a person: that plan is never carried out, and another is asked about', async () => {
      await spine.lab.break('host_down', 'host-ams-1')
      const first = await spine.pendingApproval()
      const target = (first.dryRun.details.steps as { to: string }[])[0]?.to as string
      await spine.lab.break('host_down', target)
      await spine.until('the loss to be known', async () =>
        (await spine.get<{ items: { id: string; state: string }[] }>('/hosts')).items.some(
          ({ id, state }) => id === target && state === 'dead',
        ),
      )
      await approve(first)
      const second = await spine.until('another question', async () =>
        (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(({ id }) => id !== first.id),
      )
      expect((second.dryRun.details.steps as { to: string }[]).map(({ to }) => to)).not.toContain(target)
      const started = (await spine.effects()).filter(({ request }) => request.includes('/start '))
      expect(started).toEqual([])
    })
  })

  describe('servers die', () => {
    // Servers of the tests' own: they are killed, and the spine lives through all of it.
    const directories = { postgres: temporaryDirectory(), temporal: temporaryDirectory() }
    let postgres: Postgres
    let temporal: Awaited<ReturnType<typeof ownTemporal>>
    let spine: Spine

    beforeAll(async () => {
      postgres = await startPostgres({ dir: directories.postgres.path })
      await migrateToLatest(postgres.url)
      temporal = await ownTemporal(directories.temporal.path)
      spine = await startSpine({
        parts: ['lab', 'runbook', 'api', 'worker'],
        databaseUrl: postgres.url,
        temporalAddress: temporal.current.address,
      })
    })
    afterAll(async () => {
      await spine?.stop()
      await temporal?.stop()
      await postgres?.stop()
      for (const directory of Object.values(directories)) directory.remove()
    })
    afterEach(() => spine.turnThePage())

    async function postgresAgain(): Promise<void> {
      const { port } = postgres
      giveBack(port)
      postgres = await startPostgres({ dir: directories.postgres.path, port })
      expect(postgres.port).toBe(port)
    }

    async function expectRepairedOnce(type: 'replication_lag' | 'service_down', target: string) {
      const incident = await spine.incident(type, 'resolved')
      expect((await spine.effects()).filter((effect) => effect.request.includes('converge'))).toMatchObject([
        { runs: 1 },
      ])
      expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
      expect(await spine.lab.oracle(type, target)).toMatchObject({ healthy: true })
    }

    test('PostgreSQL killed in the middle of an investigation: it goes on where its rows end', async () => {
      await spine.lab.break('replication_lag', 'db-osl-1')
      await spine.incident('replication_lag', 'investigating')
      process.kill(postgres.process.pid, 'SIGKILL')
      // Its children notice a moment after their parent died; from then on nothing is answered as if it were stored.
      await spine.until('a refusal', async () => /503/.test(String(await spine.incidents().catch(String))))
      await postgresAgain()
      await expectRepairedOnce('replication_lag', 'db-osl-1')
    })

    test('Temporal killed in the middle of an investigation: it goes on from its file', async () => {
      await spine.lab.break('replication_lag', 'db-ams-1')
      await spine.incident('replication_lag', 'investigating')
      process.kill(temporal.current.process.pid, 'SIGKILL')
      const { address } = temporal.current
      await temporal.again()
      expect(temporal.current.address).toBe(address)
      await expectRepairedOnce('replication_lag', 'db-ams-1')
    })

    test('of two workers and two API servers one pair is killed at work, and the other pair loses nothing', async () => {
      await spine.start('api2')
      await spine.start('worker2', { CORE_API_URL: spine.url2 })
      await spine.lab.break('service_down', 'web-osl-1')
      await spine.incident('service_down', 'investigating')
      await Promise.all([spine.kill('worker'), spine.kill('api')])
      spine.talkTo(spine.url2)
      await expectRepairedOnce('service_down', 'web-osl-1')
      // The other pair alone has no receiver for the lab's alerts.
      await spine.start('api')
      await spine.start('worker')
      await spine.kill('worker2')
    })

    test('an approval left for three days, over a deploy of the worker and restarts of Temporal and PostgreSQL, decides once', async () => {
      await sql`insert into platform_config (key, value) values ('approval.expiry.execute_migration', '604800')`.execute(
        spine.db,
      )
      await spine.lab.break('host_down', 'host-osl-1')
      const asked = await spine.pendingApproval()

      await spine.kill('worker', 'SIGTERM')
      await temporal.stop()
      await postgres.stop()
      await postgresAgain()
      const owner = connect(postgres.url, { owner: true })
      await moveClock(owner, '3 days')
      await owner.destroy()
      await temporal.again()
      await spine.start('worker')

      const { approver } = spine.tokens
      const token = await spine.until('a decision token', async () => {
        const minted = await spine.post(`/approvals/${asked.id}/token`, { decision: 'approve' }, { token: approver })
        return minted.body.token
      })
      const decide = () =>
        spine.post(`/approvals/${asked.id}/decision`, { decision: 'approve', token }, { token: approver })
      const answers = await Promise.all([decide(), decide(), decide()])
      expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThan(0)

      const incident = await spine.incident('host_down', 'escalated')
      const events = await spine.events(incident.id)
      expect(events.filter(({ kind }) => kind === 'approval_decided')).toHaveLength(1)
      const moves = (await spine.effects()).filter((effect) => effect.request.includes('/vms/'))
      expect(moves.length).toBeGreaterThan(0)
      expect(moves.every((effect) => effect.runs === 1)).toBe(true)
      expect(await spine.lab.oracle('host_down', 'host-osl-1')).toMatchObject({ healthy: true })
      expect(await spine.get(`/incidents/${incident.id}/verify`)).toMatchObject({ ok: true })
    })
  })
})

describe('database away', () => {
  // A server of the test's own: it is frozen, filled and closed to writes.
  let postgres: Postgres
  let db: Db
  let api: Api
  let token: string
  const closing = new AbortController()
  const stops: (() => unknown)[] = []

  beforeAll(async () => {
    const directory = temporaryDirectory()
    stops.push(() => directory.remove())
    postgres = await startPostgres({ dir: directory.path, durable: false, maxConnections: 30 })
    stops.push(() => postgres.stop())
    await migrateToLatest(postgres.url)
    open()
    token = await createToken(db, { name: 'a', role: 'admin', operatorId: await ensureOperator(db, 'a', 'admin') })
  })
  afterAll(async () => {
    closing.abort()
    await db.destroy()
    for (const stop of stops.reverse()) await stop()
  })

  function open(): void {
    db = connect(postgres.url, { max: 10 })
    api = createApi({ db, closing: closing.signal })
  }

  /** Its connections are made afresh: what a server says at their beginning, it says only then. */
  async function reopen(): Promise<void> {
    await db.destroy()
    open()
  }

  type Operation = { method: string; path: string; body: unknown }

  /** Every operation of the API, with the values of its own examples. */
  async function operations(): Promise<Operation[]> {
    const document = (await (await api.app.request('/openapi.json')).json()) as {
      paths: Record<string, Record<string, { requestBody?: { content: Record<string, { example?: unknown }> } }>>
    }
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path: path.replace('{dialect}', 'generic').replace(/\{[^}]+\}/g, 'inc_01jd8zr7v4x9k2m5n8q1s3t6w0'),
        body: operation.requestBody?.content['application/json']?.example,
      })),
    )
  }

  const anAlert: Operation = {
    ...{ method: 'POST', path: '/api/v1/ingest/generic' },
    body: { name: 'disk_pressure', severity: 'warning', title: 'full' },
  }

  type Said = { of: string; status: number; retryAfter: string | null }

  async function ask({ method, path, body }: Operation): Promise<Said> {
    const answer = await api.app.request(path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': `${method}${path}`,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    await answer.body?.cancel()
    return { of: `${method} ${path}`, status: answer.status, retryAfter: answer.headers.get('retry-after') }
  }

  const refused = (said: Said[]) => said.filter(({ status, retryAfter }) => status !== 503 || !retryAfter)

  test('a frozen database is answered by 503 with Retry-After on every route, and works again when it goes on', async () => {
    const all = (await operations()).filter(({ path }) => path.startsWith('/api/v1'))
    expect(all.length).toBeGreaterThan(60)
    // Half of the connections exist, half would have to be made.
    await Promise.all(Array.from({ length: 5 }, () => sql`select pg_sleep(0.1)`.execute(db)))
    const thaw = freeze(postgres.process.pid)
    let answered: Said[] = []
    let ready: Said
    try {
      // Without limits of the client's own nothing of this ever settles.
      answered = await Promise.all(all.map(ask))
      ready = await ask({ method: 'GET', path: '/readyz', body: undefined })
    } finally {
      thaw()
    }
    expect(refused(answered)).toEqual([])
    expect(ready.status).toBe(503)
    expect(await ask({ method: 'GET', path: '/api/v1/incidents', body: undefined })).toMatchObject({ status: 200 })
  })

  test('a transaction in which the database froze is not committed by a later one', async () => {
    const own = connect(postgres.url, { max: 1 })
    const frozen = own.transaction().execute(async (trx) => {
      await sql`insert into digest (destination, sent_at) values ('half', now())`.execute(trx)
      const thaw = freeze(postgres.process.pid)
      try {
        await sql`select 1`.execute(trx)
      } finally {
        thaw()
      }
    })
    await expect(frozen).rejects.toThrow(/not queryable/)
    await own.transaction().execute((trx) => sql`select 1`.execute(trx))
    expect((await sql`select from digest where destination = 'half'`.execute(own)).rows).toEqual([])
    await own.destroy()
  })

  test('a slow statement of a living server is waited for', async () => {
    expect((await sql`select pg_sleep(5)`.execute(db)).rows).toHaveLength(1)
  })

  describe('a database that takes no writes', () => {
    beforeAll(async () => {
      await withOwner('alter database nightshift set default_transaction_read_only = on')
      await reopen()
    })
    afterAll(async () => {
      await withOwner('set transaction read write; alter database nightshift set default_transaction_read_only = off')
      await reopen()
    })

    test('is answered by 503 wherever something is to be stored, and by no 500 anywhere', async () => {
      const all = await operations()
      const said = await Promise.all(all.map(ask))
      expect(said.filter(({ status }) => status === 500)).toEqual([])
      expect(await ask(anAlert)).toMatchObject({ status: 503, retryAfter: '5' })
    })
  })

  test('a database without a free connection is answered by 503 with Retry-After on every route', async () => {
    await reopen()
    const taken: pg.Client[] = []
    try {
      for (;;) {
        const client = new pg.Client({ connectionString: postgres.url })
        client.on('error', () => {})
        const isTaken = await client.connect().then(
          () => true,
          () => false,
        )
        if (!isTaken) break
        taken.push(client)
      }
      const all = (await operations()).filter(({ path }) => path.startsWith('/api/v1'))
      expect(refused(await Promise.all(all.map(ask)))).toEqual([])
    } finally {
      await Promise.all(taken.map((client) => client.end()))
    }
  })

  test.each([
    ['53100', 'a full disk'],
    ['58030', 'a disk that fails'],
  ])('an alert that meets %s, %s, is answered by 503', async (code) => {
    await withOwner(`create or replace function fail() returns trigger language plpgsql as
    $$ begin raise exception 'no' using errcode = '${code}'; end $$;
    create trigger fail before insert on alert for each row execute function fail()`)
    const said = await ask(anAlert)
    await withOwner('drop trigger fail on alert')
    expect(said).toMatchObject({ status: 503, retryAfter: '5' })
  })

  async function withOwner(statement: string): Promise<void> {
    const client = new pg.Client({ connectionString: postgres.url })
    await client.connect()
    await client.query(statement).finally(() => client.end())
  }
})
