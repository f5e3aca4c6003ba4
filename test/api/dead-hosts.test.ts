import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { addDevice } from '../../db/inventory/devices.ts'
import { eventsOf } from '../../db/log/events.ts'
import type { JudgedDeath } from '../../domain/death.ts'
import type { PlanStep } from '../../domain/placement.ts'
import { announced, asked, consumed } from '../support/announced.ts'
import { twoWaves, useApi } from '../support/api.ts'
import { claimedIncident } from '../support/database.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const platform = scriptedPlatform()
const api = useApi(() => ({ platform }))
const { startVm } = platform

/** Exporters that a Prometheus scrapes: instance, job, and whether it answered. */
let scraped: [string, string, 'up' | 'down'][] = []
const prometheus = createServer((_, response) => {
  const activeTargets = scraped.map(([instance, job, health]) => ({
    labels: { instance, job },
    ...{ health, lastScrape: new Date().toISOString() },
  }))
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ status: 'success', data: { activeTargets } }))
})
beforeAll(async () => {
  await new Promise<void>((resolve) => prometheus.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(prometheus.address() as AddressInfo).port}`
  await api.put('/sources/prom', { body: { kind: 'prometheus', url } })
})
afterAll(() => {
  prometheus.closeAllConnections()
  prometheus.close()
})

type Fenced = { by: string; at: string | null } | null
function setHost(change: { state?: 'live' | 'dead'; fenced?: Fenced }) {
  Object.assign(platform.inventoryState.hosts.find(({ id }) => id === 'c')!, change)
  api.api.deps.state.forget()
}

beforeEach(async () => {
  Object.assign(platform, { inventoryState: twoWaves(), script: {}, begun: [], startVm })
  setHost({ fenced: null })
  scraped = []
  await sql`delete from device`.execute(api.owner)
})

/** The agent of the host, or of a VM on it, answered so long ago. */
async function heard(kind: 'host' | 'vm', id: string, secondsAgo: number) {
  const terms = { mode: 'user', guests: null, timeoutSeconds: 60, toolsAllowed: [], enabled: true, manifestDays: 90 }
  const device = { id: `agent-${id}`, resource: { kind, id }, url: 'https://10.0.0.1', urlEnv: null, ...terms }
  await api.owner.transaction().execute((trx) => addDevice(trx, { ...device, terms: {} } as never))
  await sql`update device set health = '{}', health_at = now() - make_interval(secs => ${secondsAgo})`.execute(
    api.owner,
  )
}

function scrapeOne(health: 'up' | 'down', instance = 'c:9100'): void {
  scraped = [[instance, 'node', health]]
}

type Plan = { proposal_id: string; planDigest: string; stateFingerprint: string; steps: PlanStep[] }
async function planned(): Promise<Plan & { deaths: JudgedDeath[] }> {
  const body = { intent: 'recover', host_ids: ['c'], use_rack_constraints: false }
  const plan = (await api.post('/placement/proposals', { body })).body as unknown as Plan
  const { deaths = [] } = (await api.get(`/placement/proposals/${plan.proposal_id}`)).body as never
  return { ...plan, deaths }
}

/** What the run asks about a plan, as its tool prepares it. */
async function question(plan: Awaited<ReturnType<typeof planned>>, incidentId: string) {
  const { steps, deaths, planDigest } = plan
  const dryRun = { possible: true, summary: 'start 2 VMs', details: { steps, deaths } }
  return await asked(api.db, incidentId, { identity: { plan: planDigest }, dryRun })
}

async function decide(id: string, said: { decision?: 'approve' | 'deny'; hostIsOff?: string[] } = {}) {
  const body = { decision: 'approve', ...said }
  const as = api.tokens.approver
  const { body: minted } = await api.post(`/approvals/${id}/token`, { as, body })
  return await api.post(`/approvals/${id}/decision`, { as, body: { ...body, token: minted.token } })
}

async function carryOut(plan: Plan, incidentId: string, approvalId: string) {
  await consumed(api.db, incidentId, approvalId)
  return await api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
    as: api.tokens.agent,
    key: await announced(api.db, incidentId, 'execute_migration', { plan: plan.planDigest }, approvalId),
    body: { reason: 'host c is dead' },
    headers: { 'if-match': plan.stateFingerprint },
  })
}
const begun = () => platform.begun.length

test("a host that its platform fenced counts as off, so the plan runs without a person's statement", async () => {
  setHost({ fenced: { by: 'its power switch', at: null } })
  const incident = await claimedIncident(api.db)
  const plan = await planned()
  expect(plan.deaths).toMatchObject([{ host: 'c', verdict: 'fenced', witnesses: [{ says: 'fenced' }] }])
  const id = await question(plan, incident)
  expect((await decide(id)).status).toBe(200)
  expect((await carryOut(plan, incident, id)).body).toMatchObject({ detail: 'all 4 steps were done' })
})

test('a bare approval is refused if one witness alone reports a dead host, and a denial is accepted', async () => {
  const incident = await claimedIncident(api.db)
  const id = await question(await planned(), incident)
  expect(await decide(id)).toMatchObject({
    status: 403,
    body: {
      code: 'HOST_NOT_CONFIRMED',
      detail: expect.stringMatching(
        /^c: the platform says that it is down \(.*This needs fencing, a second independent source/,
      ),
    },
  })
  expect(await decide(id, { hostIsOff: ['b'] })).toMatchObject({
    status: 403,
    body: { detail: 'b is not one of the dead hosts whose VMs this starts elsewhere (c).' },
  })
  expect(await decide(id, { decision: 'deny', hostIsOff: ['c'] })).toMatchObject({ status: 403 })
  expect((await decide(id, { decision: 'deny' })).body).toMatchObject({ status: 'denied' })
})

test("a person's statement about exactly this host is accepted, logged under their name, and the plan runs", async () => {
  const incident = await claimedIncident(api.db)
  const plan = await planned()
  const id = await question(plan, incident)
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({ deaths: [{ host: 'c', verdict: 'unconfirmed' }] })
  expect((await decide(id, { hostIsOff: ['c'] })).status).toBe(200)
  const row = (await eventsOf(api.db, incident)).find(({ kind }) => kind === 'approval_decided')
  expect(row).toMatchObject({
    detail: 'Approved by approver, who says that c is off',
    metadata: { hostIsOff: ['c'], decision: 'approve' },
  })
  expect((await carryOut(plan, incident, id)).body).toMatchObject({ detail: 'all 4 steps were done' })
})

test('a token that was made for a bare approval cannot carry a statement about a host', async () => {
  const id = await question(await planned(), await claimedIncident(api.db))
  const as = api.tokens.approver
  const { body } = await api.post(`/approvals/${id}/token`, { as, body: { decision: 'approve' } })
  const sent = { decision: 'approve', token: body.token, hostIsOff: ['c'] }
  expect(await api.post(`/approvals/${id}/decision`, { as, body: sent })).toMatchObject({
    status: 403,
    body: { code: 'FOREIGN_TOKEN' },
  })
})

test('exporters on the host that Prometheus cannot scrape are a second witness, and exporters that measure other hosts are not', async () => {
  const incident = await claimedIncident(api.db)
  scraped = [['c:9221', 'pve', 'down']]
  expect((await planned()).deaths).toMatchObject([{ verdict: 'unconfirmed', witnesses: [{ sees: 'platform' }] }])
  scraped = [
    ['c:9100', 'node', 'down'],
    ['c:9221', 'pve', 'up'],
    ['a:9100', 'node', 'up'],
  ]
  const plan = await planned()
  expect(plan.deaths).toMatchObject([{ verdict: 'witnessed' }])
  expect(plan.deaths[0]?.sentence).toContain('Prometheus (prom) says that it is down')
  const id = await question(plan, incident)
  // Facts seen when it was asked are asked again.
  scraped = []
  expect((await decide(id)).body).toMatchObject({ code: 'HOST_NOT_CONFIRMED' })
  scraped = [['c:9100', 'node', 'down']]
  expect((await decide(id)).status).toBe(200)
  expect((await carryOut(plan, incident, id)).body).toMatchObject({ detail: 'all 4 steps were done' })
})

test.each([
  ['its own exporter answers', async () => scrapeOne('up'), 'Prometheus (prom) saw it alive'],
  [
    'an exporter in a VM on it answers',
    async () => scrapeOne('up', 'big:9100'),
    'Prometheus (prom), which scrapes big, saw it alive',
  ],
  ['its agent answered just now', () => heard('host', 'c', 5), 'the agent of host c saw it alive'],
  ['the agent of a VM on it answered just now', () => heard('vm', 'big', 5), 'the agent of vm big saw it alive'],
] as const)("while %s, no person's statement is enough", async (_, happens, sentence) => {
  const incident = await claimedIncident(api.db)
  const id = await question(await planned(), incident)
  await happens()
  expect(await decide(id, { hostIsOff: ['c'] })).toMatchObject({
    status: 403,
    body: { code: 'WITNESSES_DISAGREE', detail: expect.stringContaining(sentence) },
  })
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({
    status: 'pending',
    deaths: [{ verdict: 'disputed' }],
  })
})

test('a VM that runs elsewhere now does not prove that its former host is alive', async () => {
  const incident = await claimedIncident(api.db)
  const id = await question(await planned(), incident)
  Object.assign(platform.inventoryState.vms.find(({ id }) => id === 'lone')!, { host: 'b', running: true })
  api.api.deps.state.forget()
  await api.get('/hosts')
  await heard('vm', 'lone', 1)
  scraped = [['lone:9100', 'node', 'up']]
  expect((await api.get(`/approvals/${id}`)).body).toMatchObject({ deaths: [{ host: 'c', verdict: 'unconfirmed' }] })
})

test('an agent that answered before its host was fenced is not evidence against the fencing', async () => {
  setHost({ fenced: { by: 'its power switch', at: new Date().toISOString() } })
  await heard('host', 'c', 20)
  expect((await planned()).deaths).toMatchObject([{ verdict: 'fenced' }])
})

test('an approved plan is refused before its first step if the host answered since the approval', async () => {
  const incident = await claimedIncident(api.db)
  const plan = await planned()
  const id = await question(plan, incident)
  expect((await decide(id, { hostIsOff: ['c'] })).status).toBe(200)
  await heard('host', 'c', 1)
  expect(await carryOut(plan, incident, id)).toMatchObject({
    status: 409,
    body: { code: 'WITNESSES_DISAGREE', detail: expect.stringContaining('the agent of host c saw it alive') },
  })
  expect(begun()).toBe(0)
})

test('a host that answers in the middle of a plan stops all steps that are left', async () => {
  const incident = await claimedIncident(api.db)
  const plan = await planned()
  const id = await question(plan, incident)
  await decide(id, { hostIsOff: ['c'] })
  platform.startVm = async (...args) => {
    await heard('host', 'c', 1)
    return await startVm(...args)
  }
  const { body } = await carryOut(plan, incident, id)
  const steps = body.steps as unknown as { vm: string; status: string; detail: string }[]
  expect(steps.find(({ vm }) => vm === 'big')).toMatchObject({
    status: 'SKIPPED',
    detail: expect.stringContaining('The sources disagree'),
  })
  expect(platform.inventoryState.vms.find(({ id }) => id === 'big')).toMatchObject({ host: 'c', running: false })
})

test("a person's own plan has to say which host is off, or nothing begins", async () => {
  const plan = await planned()
  const send = (more: object) =>
    api.post(`/placement/proposals/${plan.proposal_id}/execute`, {
      as: api.tokens.approver,
      body: { reason: 'host c is dead', ...more },
      headers: { 'if-match': plan.stateFingerprint },
    })
  expect(await send({})).toMatchObject({ status: 409, body: { code: 'HOST_NOT_CONFIRMED', hosts: ['c'] } })
  // Temporal is not there, and the incident that waits for it has the word.
  const { body } = await send({ hostIsOff: ['c'] })
  const [first] = await eventsOf(api.db, String(body.incidentId))
  expect(first).toMatchObject({ kind: 'change_requested', metadata: { hostIsOff: ['c'] } })
})
