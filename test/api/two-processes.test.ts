import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createApi } from '../../api/app.ts'
import { connect, type Db } from '../../db/connect.ts'
import type { PlanStep } from '../../domain/placement.ts'
import type { Inventory } from '../../domain/platform.ts'
import { claimedIncident } from '../support/database.ts'
import { asked } from './announced.ts'
import { twoWaves, useApi } from './api.ts'
import { scriptedPlatform } from './scripted-platform.ts'

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

  async function post(at: number, path: string, body: object, more: { key?: string; as?: string } = {}): Promise<Sent> {
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
