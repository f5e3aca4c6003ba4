import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { serve } from '@hono/node-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { createApi } from '../../api/app.ts'
import { readWeb } from '../../api/routes/pages.ts'
import { listen } from '../../bench/stream.ts'
import { createApiClient } from '../../cli/api.ts'
import { streamEvents } from '../../cli/stream.ts'
import { createToken } from '../../db/access/tokens.ts'
import { connect, type Db } from '../../db/connect.ts'
import { append } from '../../db/log/append.ts'
import { eventsOf } from '../../db/log/events.ts'
import { listenLive, tellLive } from '../../db/log/live.ts'
import type { LiveAnswer } from '../../domain/chat.ts'
import type { PlanStep } from '../../domain/placement.ts'
import type { Inventory } from '../../domain/platform.ts'
import { rootDir } from '../../start/web.ts'
import { useServedApi } from '../cli/run-cli.ts'
import { claimedIncident, openedIncident, useDatabase } from '../support/database.ts'
import { compileCache, eventually, freePort } from '../support/directory.ts'
import { asked } from './announced.ts'
import { twoWaves, useApi } from './api.ts'
import { scriptedPlatform } from './scripted-platform.ts'

describe('serving', () => {
  describe('listeners', () => {
    const api = useServedApi()

    test('ten pages whose connections keep being cut off hear every row once and in order', async () => {
      const incidents = await Promise.all(Array.from({ length: 4 }, () => openedIncident(api.db)))
      const pages = listen({ url: api.apiUrl, token: api.tokens.viewer, count: 10, dropEveryMs: 250 })
      await pages.ready
      try {
        const rows: string[] = []
        // Until enough was written, and enough was cut off while it was.
        while (rows.length < 300 || pages.counts.reconnects < 20)
          rows.push(...(await Promise.all(incidents.map(comment))))
        await eventually('every page has every row', () => pages.heard(rows).every(({ missing }) => missing === 0))
        const wanted = { received: rows.length, missing: 0, duplicates: 0, outOfOrder: 0 }
        expect(pages.heard(rows)).toEqual(Array.from({ length: 10 }, () => wanted))
      } finally {
        pages.end()
      }
    })

    test('who comes late sees what a model writes when it is told next; the stream of another incident, and the log, have nothing of it', async () => {
      const [id, other] = [await openedIncident(api.db), await openedIncident(api.db)]
      const live = {
        ...{ incidentId: id, attempt: 1, turn: 3, maxTurns: 10, model: 'qwen', state: 'writing' as const },
        ...{ seconds: 14, tokens: 310, isCounted: false, tail: 'the replica lags' },
      }
      const client = createApiClient({ url: api.apiUrl, token: api.tokens.viewer, run: null })
      const ends = new AbortController()
      const heard: { of: string; live: LiveAnswer }[] = []
      const watch = async (incidentId: string | undefined, of: string) => {
        const onLive = (said: LiveAnswer) => void heard.push({ of, live: said })
        for await (const _ of streamEvents(client, { incidentId, signal: ends.signal, onLive }));
      }
      const watching = [watch(id, 'early'), watch(undefined, 'all'), watch(other, 'other')]
      const toldTo = async (who: string) => {
        await tellLive(api.db, live)
        return heard.some(({ of }) => of === who)
      }
      await eventually('the first sees it', () => toldTo('early'))
      watching.push(watch(id, 'late'))
      await eventually('who comes late sees it', () => toldTo('late'))
      await eventually('all see it', () => toldTo('all'))
      ends.abort()
      await Promise.all(watching)
      expect(heard[0]!.live).toEqual(live)
      expect(new Set(heard.map(({ of }) => of))).toEqual(new Set(['early', 'all', 'late']))
      expect(JSON.stringify(await eventsOf(api.db, id))).not.toContain('the replica lags')
    })

    test('of a run that nobody watches nothing is told, from the moment on that the last watcher has left', async () => {
      const [id, other] = [await openedIncident(api.db), await openedIncident(api.db)]
      const told = async (incidentId: string) =>
        await tellLive(api.db, {
          ...{ incidentId, attempt: 1, turn: 1, maxTurns: 10, model: 'qwen', state: 'writing' as const },
          ...{ seconds: 1, tokens: 2, isCounted: false, tail: 'words' },
        })
      const client = createApiClient({ url: api.apiUrl, token: api.tokens.viewer, run: null })
      const watch = (incidentId: string | undefined) => {
        const ends = new AbortController()
        const watching = (async () => {
          for await (const _ of streamEvents(client, { incidentId, signal: ends.signal, onLive: () => {} }));
        })()
        return async () => {
          ends.abort()
          await watching
        }
      }
      await eventually('nobody watches', async () => !(await told(id)))
      const leave = [watch(id), watch(id)]
      await eventually('it is watched', async () => await told(id))
      expect(await told(other)).toBe(false)
      await leave[0]!()
      // Who comes and leaves after it: once that is known, the first leaving is.
      const leaveOther = watch(other)
      await eventually('the other is watched', async () => await told(other))
      await leaveOther()
      await eventually('nobody watches the other', async () => !(await told(other)))
      expect(await told(id)).toBe(true)
      await leave[1]!()
      await eventually('nobody watches it', async () => !(await told(id)))
      const leaveAll = watch(undefined)
      await eventually('a page watches all', async () => (await told(id)) && (await told(other)))
      await leaveAll()
      await eventually('the page is closed', async () => !(await told(id)) && !(await told(other)))
    })

    test('what anybody else says on the channel of the database is passed over', async () => {
      const id = await openedIncident(api.db)
      const ends = new AbortController()
      const heard: LiveAnswer[] = []
      const listening = listenLive(api.db, (said) => void heard.push(said), ends.signal)
      const good = {
        ...{ incidentId: id, attempt: 1, turn: 1, maxTurns: 10, model: 'qwen', state: 'asked' as const },
        ...{ seconds: 1, tokens: 0, isCounted: false, tail: '' },
      }
      await eventually('a good word is heard', async () => {
        for (const payload of ['x', '{}', JSON.stringify({ ...good, tokens: 'many' })])
          await sql`select pg_notify('nightshift_live_answers', ${payload})`.execute(api.db)
        await tellLive(api.db, { ...good, tail: '\u0001'.repeat(400), model: '漢'.repeat(200), incidentId: id })
        return heard.length > 0
      })
      ends.abort()
      await listening
      expect(new Set(heard.map(({ model }) => model))).toEqual(new Set(['漢'.repeat(200)]))
    })

    async function comment(incidentId: string): Promise<string> {
      const { event } = await api.db.transaction().execute((trx) =>
        append(trx, incidentId, null, {
          kind: 'commented',
          actor: 'user:test',
          detail: 'a row',
          metadata: { text: 'a row', confidence: null, action: null },
        }),
      )
      return String(event.id)
    }
  })

  describe('process', () => {
    const database = useDatabase()

    test('the API starts and takes alerts in while Temporal is down, and leaves within five seconds of being told', async () => {
      const ingest = await createToken(database.db, { name: 'ingest', role: 'ingest', operatorId: null })
      const agent = await createToken(database.db, { name: 'agent', role: 'agent', operatorId: null })
      const port = await freePort()
      const url = `http://127.0.0.1:${port}`
      const child = spawn(process.execPath, ['api/main.ts'], {
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: compileCache,
          DATABASE_URL: database.url,
          TEMPORAL_ADDRESS: `127.0.0.1:${await freePort()}`,
          PORT: String(port),
          LOG_LEVEL: 'warn',
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let log = ''
      child.stdout.on('data', (bytes) => {
        log += bytes
      })
      child.stderr.on('data', (bytes) => {
        log += bytes
      })
      try {
        await eventually('it to be ready', async () => (await fetch(`${url}/readyz`).catch(() => null))?.status === 200)
        const ready = await fetch(`${url}/readyz`)
        expect(await ready.json()).toMatchObject({
          status: 'ok',
          checks: { temporal: { status: 'failed', required: false } },
        })

        const taken = await fetch(`${url}/api/v1/ingest/generic`, {
          method: 'POST',
          headers: { authorization: `Bearer ${ingest}`, 'content-type': 'application/json' },
          body: JSON.stringify({ title: 'Backup failed' }),
        })
        expect(taken.status).toBe(202)

        const stream = await fetch(`${url}/api/v1/stream`, { headers: { authorization: `Bearer ${agent}` } })
        expect(stream.headers.get('x-accel-buffering')).toBe('no')
        const reading = stream.text()
        child.kill('SIGTERM')
        const [code] = await once(child, 'exit')
        expect(code).toBe(0)
        expect(await reading).toContain('retry: 3000')
        expect(log).not.toContain(ingest)
      } finally {
        child.kill('SIGKILL')
      }
    })
  })

  describe('signpost', () => {
    const api = useApi()
    const page = (path: string) => api.api.app.request(path)

    test('a link from a message leads to the commands that show and decide the thing, without a sign-in', async () => {
      const answer = await page('/approvals/apr_01m7ytcwv43rahnzpzzeghzv30')
      expect(answer.status).toBe(200)
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(await answer.text()).toContain('approvals approve apr_01m7ytcwv43rahnzpzzeghzv30')
      expect((await page('/')).headers.get('location')).toBe('/docs')
    })

    test.each(['/incidents/inc_%3Cscript%3E', '/incidents/x', '/approvals/..%2f'])(
      'a link to %s shows nothing of it',
      async (path) => {
        const answer = await page(path)
        expect(answer.status).toBe(404)
        expect(answer.headers.get('content-type')).toContain('problem+json')
      },
    )
  })

  describe('web', () => {
    const dist = join(rootDir, 'web', 'dist')
    const api = useApi(() => ({ webDir: dist }))
    const ask = (path: string, headers: Record<string, string> = {}) => api.api.app.request(path, { headers })
    const scripts = () => [...(readWeb(dist)?.files ?? [])].filter(([path]) => /^\/assets\/.*\.js$/.test(path))

    test('every address of a page is the page, under a policy that lets nothing foreign and nothing inline in', async () => {
      const own = ['/', '/home', '/incidents', '/incidents/inc_1', '/approvals/apr_1', '/alerts', '/config', '/sign-in']
      for (const path of [...own, '/audit', '/people', '/tokens']) {
        const answer = await ask(path)
        expect([path, answer.status]).toEqual([path, 200])
        expect(answer.headers.get('content-security-policy')).toBe(
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        )
        expect(answer.headers.get('cache-control')).toBe('no-cache')
        expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      }
    })

    test('nothing on the page needs what its policy forbids', () => {
      const page = readFileSync(join(dist, 'index.html'), 'utf8')
      expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?:\/\//)
    })

    test('files whose name holds their hash are kept for ever, and come packed to who can unpack', async () => {
      const [path] = scripts()[0] ?? ['']
      expect((await ask('/push-worker.js')).headers.get('cache-control')).toBe('no-cache')
      const packed = await ask(path, { 'accept-encoding': 'br, gzip' })
      expect(packed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      expect(packed.headers.get('content-encoding')).toBe('gzip')
      expect((await ask(path)).headers.get('content-encoding')).toBeNull()
      const again = await ask(path, { 'if-none-match': packed.headers.get('etag') ?? '' })
      expect(again.status).toBe(304)
    })

    test('nothing outside the built files is served', async () => {
      for (const path of [
        '/assets/none.js',
        '/assets/../../package.json',
        '/assets/%2e%2e/%2e%2e/package.json',
        '/config.ts',
      ]) {
        expect((await ask(path)).status).toBe(404)
      }
    })

    test('an address that leads nowhere is a page for a person, with 404, and a problem for a program', async () => {
      for (const path of ['/ingest/grafana', '/incident', '/incidents/a/b']) {
        const page = await ask(path, { accept: 'text/html,application/xhtml+xml' })
        expect([page.status, page.headers.get('content-type')]).toEqual([404, 'text/html; charset=utf-8'])
        expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
        const problem = await ask(path)
        expect([problem.status, problem.headers.get('content-type')]).toEqual([404, 'application/problem+json'])
      }
      const problem = await ask('/api/v1/nothing', { accept: 'text/html', authorization: 'Bearer x' })
      expect(problem.headers.get('content-type')).toBe('application/problem+json')
    })

    test('the documents of the API stay where they were', async () => {
      expect((await ask('/docs')).status).toBe(200)
      expect((await ask('/openapi.json')).status).toBe(200)
    })

    test('the JavaScript of the page stays below 200 kB', () => {
      const bytes = scripts().reduce((sum, [, { bytes }]) => sum + gzipSync(bytes).length, 0)
      expect(bytes).toBeLessThan(200_000)
    })

    test('the page imports types of the nouns, and nothing else of ours', () => {
      const sources = readWeb(dist)?.files ?? new Map()
      // A schema in the bundle would bring zod with it.
      for (const [, { bytes }] of sources) expect(bytes.toString('latin1')).not.toContain('ZodError')
    })
  })
})

describe('two processes', () => {
  describe('drift', () => {
    // A person approved moves of things with names. What bears a name may be another thing by the time its step comes.
    const platform = scriptedPlatform()
    const api = useApi(() => ({ platform }))
    const { migrateVm, inventory } = platform

    beforeEach(() => {
      Object.assign(platform, { inventoryState: twoWaves(), script: {}, down: false, begun: [] })
      api.api.deps.state.forget()
    })
    afterEach(() => {
      Object.assign(platform, { migrateVm, inventory })
    })

    type Plan = { proposal_id: string; stateFingerprint: string; steps: PlanStep[] }
    type Step = { vm: string; status: string; detail: string }

    /** Executes the plan for the dead host, and answers what became of each VM. */
    async function executed(change: () => void): Promise<Record<string, Step>> {
      const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false, incident_id: null }
      const plan = (await api.post('/placement/proposals', { body })).body as unknown as Plan
      change()
      const headers = { 'if-match': plan.stateFingerprint }
      const more = { body: { reason: 'host c is dead' }, key: `k-${plan.proposal_id}`, headers }
      const answer = await api.post(`/placement/proposals/${plan.proposal_id}/execute`, more)
      const done = (answer.body.result ?? answer.body) as unknown as { steps: Step[] }
      const numbers = new Map(plan.steps.map(({ step, vm }) => [String(step), vm]))
      const begun = platform.begun.map((key) => numbers.get(key.split(':').at(-1) ?? ''))
      for (const { vm, status } of done.steps) expect([vm, begun.includes(vm)]).toEqual([vm, status !== 'SKIPPED'])
      return Object.fromEntries(done.steps.map((step) => [step.vm, step]))
    }

    const vm = (id: string) => platform.inventoryState.vms.find((each) => each.id === id) as Inventory['vms'][number]
    const host = (id: string) =>
      platform.inventoryState.hosts.find((each) => each.id === id) as Inventory['hosts'][number]
    const notApproved = (why: string) => ({ status: 'SKIPPED', detail: `${why}: it is not what was approved` })
    /** Does something to the platform once, after the first VM has moved. */
    function afterAMove(change: () => void): void {
      platform.migrateVm = async (...args) => {
        const answer = await migrateVm(...args)
        change()
        return answer
      }
    }
    /** Does something to the platform between the look that compares it with the approved state and the next one. */
    function afterTheComparison(change: () => void): void {
      let reads = 0
      platform.inventory = async () => {
        reads += 1
        if (reads === 2) change()
        return await inventory()
      }
    }

    test('what changes between the comparison with the approved state and the first step is not taken for approved', async () => {
      const steps = await executed(() =>
        afterTheComparison(() => {
          Object.assign(vm('lone'), { cpuMc: 700 })
          Object.assign(vm('small-1'), { haGroup: 'databases' })
        }),
      )
      expect(steps.lone).toMatchObject(notApproved('lone has another size'))
      expect(steps['small-1']).toMatchObject(notApproved('small-1 has other rules'))
      expect(steps.big?.status).toBe('SKIPPED')
    })

    test.each<[string, () => void, string]>([
      ['a VM of another size', () => Object.assign(vm('big'), { cpuMc: 700 }), 'big has another size'],
      ['a VM with other rules', () => Object.assign(vm('big'), { affinityGroup: 'x' }), 'big has other rules'],
      ['a host that stands elsewhere', () => Object.assign(host('a'), { rack: 'rack-b' }), 'a stands elsewhere'],
      ['a host of another size', () => Object.assign(host('a'), { ramMib: 8_100 }), 'a has another size'],
    ])('in the middle of a plan, %s under the name that was approved takes no step', async (_, change, why) => {
      const steps = await executed(() => afterAMove(change))
      expect(steps.big).toMatchObject(notApproved(why))
      expect(steps).toMatchObject({ 'small-1': { status: 'OK' }, 'small-2': { status: 'OK' }, lone: { status: 'OK' } })
    })

    test('a VM that was gone for a while takes no step when something of its name and looks is back', async () => {
      const gone = vm('big')
      let isGone = false
      const steps = await executed(() => {
        afterAMove(() => {
          isGone = true
        })
        platform.inventory = async () => {
          const told = await inventory()
          return isGone ? { ...told, vms: told.vms.filter(({ id }) => id !== 'big') } : told
        }
      })
      expect(steps.big).toMatchObject(notApproved('big is gone'))
      expect(vm('big')).toEqual(gone)
    })
  })

  describe('two processes', () => {
    // Two servers with connections of their own on one database, as behind a balancer: what one knows, the other knows.
    const platform = scriptedPlatform()
    const api = useApi(() => ({ platform }))
    const urls: string[] = []
    const servers: Server[] = []
    const pools: Db[] = []

    beforeAll(async () => {
      for (const _ of [1, 2]) {
        const db = connect(api.url, { max: 5 })
        const { app } = createApi({ db, platform })
        const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
        if (!server.listening) await once(server, 'listening')
        pools.push(db)
        servers.push(server)
        urls.push(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      }
    })
    afterAll(async () => {
      for (const server of servers) {
        server.closeAllConnections()
        server.close()
      }
      await Promise.all(pools.map((pool) => pool.destroy()))
    })

    type Sent = { status: number; body: Record<string, unknown>; replayed: string | null }

    async function post(
      at: number,
      path: string,
      body: object,
      more: { key?: string; as?: string } = {},
    ): Promise<Sent> {
      const headers = {
        'content-type': 'application/json',
        authorization: `Bearer ${more.as ?? api.tokens.admin}`,
        ...(more.key && { 'idempotency-key': more.key }),
      }
      const answer = await fetch(`${urls[at % 2]}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
      const replayed = answer.headers.get('idempotency-replayed')
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown>, replayed }
    }
    const many = <T>(count: number, work: (at: number) => Promise<T>) =>
      Promise.all(Array.from({ length: count }, (_, at) => work(at)))

    test('a write under one key that reaches both servers many times at once is done once', async () => {
      let calls = 0
      const { converge } = platform
      platform.converge = (...asked) => {
        calls += 1
        return converge(...asked)
      }
      // Each server has read the platform.
      const headers = { authorization: `Bearer ${api.tokens.admin}` }
      await many(2, (at) => fetch(`${urls[at]}/api/v1/shards/db-osl-1/nodes`, { headers }))
      const answers = await many(12, (at) =>
        post(at, '/api/v1/shards/db-osl-1/converge', { reason: 'a test' }, { key: 'one-key' }),
      )
      expect([calls, platform.begun.filter((key) => key.includes('one-key')).length]).toEqual([1, 1])
      expect(answers.every(({ status }) => status === 200 || status === 202 || status === 409)).toBe(true)
      const other = await many(2, (at) =>
        post(at, '/api/v1/shards/db-osl-1/converge', { reason: 'another' }, { key: 'one-key' }),
      )
      expect(other.map(({ body }) => body.code)).toEqual(['IDEMPOTENCY_KEY_REUSED', 'IDEMPOTENCY_KEY_REUSED'])
    })

    test('a decision token that is shown to both servers at once decides once, for its verdict and its approval alone', async () => {
      const [first, second] = await many(
        2,
        async () => await asked(api.db, await claimedIncident(api.db), { required: 2 }),
      )
      const as = api.tokens.approver
      const minted = await post(0, `/api/v1/approvals/${first}/token`, { decision: 'approve' }, { as })
      const body = { decision: 'approve', token: minted.body.token }
      const answers = await many(8, (at) => post(at, `/api/v1/approvals/${first}/decision`, body, { as }))
      expect(answers.every(({ status }) => status === 200)).toBe(true)
      const [approval] = (await api.get(`/approvals/${first}`)).body.decisions as unknown as object[]
      expect((await api.get(`/approvals/${first}`)).body).toMatchObject({ status: 'pending', decisions: [approval] })
      const wrong = await many(2, (at) => post(at, `/api/v1/approvals/${second}/decision`, body, { as }))
      expect(wrong.map(({ status }) => status < 500 && status >= 400)).toEqual([true, true])
      expect((await api.get(`/approvals/${second}`)).body).toMatchObject({ status: 'pending', decisions: [] })
    })

    test('tries to decide and wrong tokens are counted over both servers', async () => {
      const approval = await asked(api.db, await claimedIncident(api.db))
      const tries = await many(30, (at) =>
        post(at, `/api/v1/approvals/${approval}/token`, { decision: 'deny' }, { as: api.tokens.approver }),
      )
      expect(tries.filter(({ status }) => status === 429)).toHaveLength(10)
      const guesses = await many(24, (at) => post(at, '/api/v1/incidents', {}, { as: 'nst_guessed' }))
      expect(guesses.filter(({ status }) => status === 429)).toHaveLength(4)
    })

    test('a session that one server opened and the other ended is over at both, at once', async () => {
      const origin = (at: number) => ({ origin: urls[at] as string })
      const opened = await fetch(`${urls[0]}/auth/session`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...origin(0) },
        body: JSON.stringify({ token: api.tokens.approver }),
      })
      const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? ''
      const who = () => many(2, async (at) => (await fetch(`${urls[at]}/auth/session`, { headers: { cookie } })).status)
      expect(await who()).toEqual([200, 200])
      await fetch(`${urls[1]}/auth/session`, { method: 'DELETE', headers: { cookie, ...origin(1) } })
      expect(await who()).toEqual([401, 401])
    })

    test('a code to sign in that is shown to both servers at once opens one session', async () => {
      const { body } = await post(0, '/auth/codes', {})
      const answers = await many(8, async (at) => {
        const headers = { 'content-type': 'application/json', origin: urls[at % 2] as string }
        return (
          await fetch(`${urls[at % 2]}/auth/session`, {
            method: 'POST',
            headers,
            body: JSON.stringify({ code: body.code }),
          })
        ).status
      })
      expect(answers.filter((status) => status === 200)).toHaveLength(1)
    })
  })
})
