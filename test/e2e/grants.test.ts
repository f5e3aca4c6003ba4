import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import type { Approval, StandingGrant } from '../../domain/approval.ts'
import { type Spine, startSpine } from '../support/spine.ts'

let spine: Spine

beforeAll(async () => {
  spine = await startSpine({ parts: ['lab', 'runbook', 'api', 'worker'] })
  await sql`insert into platform_config (key, value) values ('approval.risk.converge_shard', 'medium')`.execute(
    spine.db,
  )
}, 300_000)
afterAll(async () => {
  await spine?.stop()
})

async function decided(approval: Approval, decision: Record<string, unknown>) {
  const as = { token: spine.tokens.approver }
  const { body } = await spine.post(`/approvals/${approval.id}/token`, { decision: 'approve' }, as)
  return await spine.post(
    `/approvals/${approval.id}/decision`,
    { decision: 'approve', token: body.token, ...decision },
    as,
  )
}

const grants = async () => (await spine.get<{ items: StandingGrant[] }>('/grants')).items
const ends = (id: string, status: string) =>
  spine.until(
    `${id} ${status}`,
    async () => (await spine.get<{ status: string }>(`/incidents/${id}`)).status === status,
  )
const codes = async (id: string) =>
  (await spine.events(id)).flatMap((event) =>
    event.kind === 'call_judged' && event.metadata.effect === 'write' ? [event.metadata.code] : [],
  )
const newest = async (type: string) => (await spine.incidents(`?type=${type}`))[0]?.id ?? ''

test('a standing grant lets the very same action run without asking, once for each use, and no other action', async () => {
  await spine.lab.break('service_down', 'web-osl-1')
  const asked = await spine.pendingApproval()
  expect((await decided(asked, { grant: { uses: 30, hours: 1 } })).status).toBe(422)
  expect((await decided(asked, { grant: { uses: 1, hours: 1 } })).body).toMatchObject({ status: 'approved' })
  await ends(asked.incidentId, 'resolved')
  expect(await grants()).toMatchObject([{ tool: 'converge_shard', uses: 1, usesLeft: 1, grantedBy: 'approver' }])

  // The same shard drifts: another incident, the same action.
  await spine.lab.heal()
  await spine.lab.break('config_drift', 'web-osl-1')
  await spine.incident('config_drift', 'resolved')
  expect(await codes(await newest('config_drift'))).toEqual(['GRANTED'])
  expect(await grants()).toMatchObject([{ usesLeft: 0 }])

  // Used up, and for another shard it never counted.
  await spine.lab.break('disk_pressure', 'web-osl-1')
  const again = await spine.pendingApproval()
  expect(again.targets).toEqual([{ kind: 'shard', id: 'web-osl-1' }])
  await decided(again, { grant: { uses: 5, hours: 1 } })
  await ends(again.incidentId, 'resolved')
  await spine.lab.break('service_down', 'web-ams-1')
  const elsewhere = await spine.pendingApproval()
  expect(elsewhere.targets).toEqual([{ kind: 'shard', id: 'web-ams-1' }])
}, 300_000)

test('a revoked grant counts no more, and a high risk is never granted', async () => {
  const open = (await grants()).find(({ usesLeft }) => usesLeft > 0)
  const as = { token: spine.tokens.approver }
  expect((await spine.post(`/grants/${open?.id}/revoke`, {}, as)).body).toMatchObject({ revoked: true })
  expect((await spine.post(`/grants/${open?.id}/revoke`, {}, as)).status).toBe(404)
  expect((await spine.post(`/grants/${open?.id}/revoke`, {}, { token: spine.tokens.agent })).status).toBe(403)
  await spine.lab.break('host_down', 'host-osl-1')
  const asked = await spine.until('the migration', async () =>
    (await spine.get<{ items: Approval[] }>('/approvals?status=pending')).items.find(
      ({ tool }) => tool === 'execute_migration',
    ),
  )
  const refused = await decided(asked, { grant: { uses: 1, hours: 1 } })
  expect([refused.status, refused.body.code]).toEqual([422, 'NOT_GRANTABLE'])
}, 300_000)

test('what is stored of all this holds against the log', async () => {
  expect(await spine.get('/verify?limit=100')).toMatchObject({ differences: [], nextCursor: null })
  expect(await spine.get('/audit/verify')).toMatchObject({ ok: true })
})

test('the API and the worker count the same in the log, with the model and who serves it', async () => {
  const scrape = async (url: string) =>
    (await (await fetch(`${url}/metrics`)).text()).split('\n').filter((line) => line.startsWith('nightshift_agentic'))
  const counted = await spine.until('both to have counted every turn', async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from incident_event where kind = 'model_answered'`.execute(spine.db)
    const [api, worker] = await Promise.all([scrape(spine.url), scrape(spine.workerUrl)])
    const total = api?.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
    return total === rows[0]?.count && JSON.stringify(api) === JSON.stringify(worker) && api
  })
  expect(counted).toEqual([expect.stringContaining(`{provider="${new URL(spine.runbookUrl).host}",model=`)])
})
