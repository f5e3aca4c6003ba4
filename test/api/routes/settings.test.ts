import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { closeConnections } from '../../../clients/http.ts'
import { listEnvironment } from '../../../config/environment.ts'
import { noteWorkerEnvironment } from '../../../db/settings.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import type { ShownVariable } from '../../../domain/setting-row.ts'
import { useApi } from '../../support/api.ts'
import { startLocalServer } from '../../support/local-server.ts'

const api = useApi(() => ({
  environment: { LLM_MAX_TURNS: '7' },
  variables: listEnvironment({ LLM_MAX_TURNS: '7', DATABASE_URL: 'postgresql://u:hunter2@db/x' }),
}))

test('a value is set, takes effect, and its history names who changed it and why', async () => {
  const answer = await api.put('/config/agent.max_turns', { body: { value: '12', reason: 'disks need more' } })
  expect([answer.status, answer.headers.get('etag')]).toEqual([200, '"1"'])
  const effective = await api.get('/config/effective?type=disk_pressure')
  expect(effective.body.items).toContainEqual({
    name: 'agent.max_turns',
    key: 'agent.max_turns',
    value: 12,
    source: 'global',
    problem: null,
  })
  expect((await api.get('/config/agent.max_turns/revisions')).body.items).toMatchObject([
    { version: 1, oldValue: null, newValue: '12', actor: 'user:admin', reason: 'disks need more' },
  ])
})

test('if two people change the same version, one change is stored and the other person is told', async () => {
  await api.put('/config/agent.leader_wait', { body: { value: '60' }, headers: { 'if-match': '"0"' } })
  const changes = await Promise.all(
    ['90', '120'].map((value) =>
      api.put('/config/agent.leader_wait', { body: { value }, headers: { 'if-match': '"1"' } }),
    ),
  )
  expect(changes.map(({ status }) => status).sort()).toEqual([200, 412])
  const late = await api.put('/config/agent.leader_wait', { body: { value: '1' }, headers: { 'if-match': '"0"' } })
  expect([late.status, late.body.version]).toEqual([412, 2])
})

test('an invalid value and an unknown key are refused', async () => {
  const wrong = await api.put('/config/agent.max_turns', { body: { value: 'many' } })
  expect([wrong.status, wrong.body.code]).toEqual([422, 'INVALID'])
  expect((await api.put('/config/agent.no_such', { body: { value: '1' } })).status).toBe(404)
})

test('without a stored value the environment overrides the default', async () => {
  await sql`delete from platform_config where key = 'agent.max_turns'`.execute(api.owner)
  expect((await api.get('/config/effective')).body.items).toContainEqual({
    name: 'agent.max_turns',
    key: 'LLM_MAX_TURNS',
    value: 7,
    source: 'environment',
    problem: null,
  })
})

test('a secret is shown to nobody, neither as a value nor in its history', async () => {
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
  const key = 'webhook.escalated.secret'
  const answers = [
    await api.put(`/config/${key}`, { body: { value: secret } }),
    await api.get('/config'),
    await api.get(`/config/${key}`),
    await api.get(`/config/${key}/revisions`),
    await api.get('/config/effective'),
  ]
  for (const { status, body } of answers) {
    expect([status, body.detail]).toEqual([200, undefined])
    expect(JSON.stringify(body)).not.toContain(secret)
  }
})

test('the effective environment is for admins, and of a secret it shows only that it is set', async () => {
  const answer = await api.get('/config/environment')
  expect(answer.body.items).toContainEqual(expect.objectContaining({ name: 'LLM_MAX_TURNS', value: '7' }))
  expect(answer.body.items).toContainEqual(
    expect.objectContaining({ name: 'DATABASE_URL', secret: true, state: 'set', value: null }),
  )
  expect(JSON.stringify(answer.body)).not.toContain('hunter2')
  for (const role of ['viewer', 'operator', 'approver', 'agent'] as const)
    expect([role, (await api.get('/config/environment', { as: api.tokens[role] })).status]).toEqual([role, 403])
})

test('the settings of the worker that started last are shown beside it, without its secrets', async () => {
  const before = (await api.get('/config/environment')).body
  const workers = (before.items as unknown as ShownVariable[]).map(({ worker }) => worker)
  expect([before.workerStartedAt, new Set(workers)]).toEqual([null, new Set([null])])
  await noteWorkerEnvironment(api.db, listEnvironment({ LLM_MAX_TURNS: '9' }))
  const given = {
    LLM_MAX_TURNS: '20',
    LLM_API_KEY: 'hunter3',
    LLM_BASE_URL: 'http://me:hunter3@model/v1?key=hunter3',
  }
  await noteWorkerEnvironment(api.db, listEnvironment(given))
  const { body } = await api.get('/config/environment')
  const items = body.items as unknown as ShownVariable[]
  const of = (name: string) => items.find((each) => each.name === name)
  expect(body.workerStartedAt).toMatch(/^2\d{3}-/)
  expect(of('LLM_MAX_TURNS')).toMatchObject({ value: '7', worker: { state: 'set', value: '20' } })
  expect(of('LLM_API_KEY')).toMatchObject({ state: 'not_set', worker: { state: 'set', value: null } })
  expect(of('LLM_BASE_URL')?.worker?.value).toBe('http://model/v1?…')
  const { rows } = await sql<{ text: string }>`select variables::text as text from worker_environment`.execute(api.db)
  expect(rows.map(({ text }) => text.includes('hunter'))).toEqual([false])
})

test("a test message is sent to the stored address with its secret, and the answer is the receiver's", async () => {
  const receiver = await startLocalServer()
  try {
    const [url, secret] = [`${receiver.url}/hook/PATH`, `whsec_${Buffer.alloc(32, 7).toString('base64')}`]
    expect((await api.post('/webhooks/approval/test')).body).toMatchObject({ code: 'NOT_SET', status: 409 })
    await api.put('/config/webhook.approval.url', { body: { value: url } })
    await api.put('/config/webhook.approval.secret', { body: { value: secret } })
    receiver.play((response) => response.writeHead(200).end('thanks'))
    expect((await api.post('/webhooks/approval/test')).body).toEqual({
      outcome: 'sent',
      status: 200,
      detail: 'the receiver answered 200',
      said: 'thanks',
    })
    const { body, headers } = receiver.seen.at(-1)!
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({
      type: 'incident.notice',
      data: { page: false, reason: 'admin sent this message to test webhook.approval.' },
    })
    receiver.play((response) => response.writeHead(403).end('no such channel at /hook/PATH'))
    expect((await api.post('/webhooks/approval/test')).body).toEqual({
      outcome: 'drop',
      status: 403,
      detail: 'the receiver answered 403',
      said: 'no such channel at [path]',
    })
    const audit = (await api.get('/audit?what=webhook')).body.items
    expect(audit).toMatchObject([
      { what: 'webhook.tested', who: 'admin', subject: 'webhook.approval', detail: 'The receiver answered 403' },
      { detail: 'The receiver answered 200' },
    ])
    for (const role of ['viewer', 'approver', 'agent'] as const)
      expect((await api.post('/webhooks/approval/test', { as: api.tokens[role] })).status).toBe(403)
    receiver.play((response) => response.writeHead(204).end())
    const statuses: number[] = []
    for (let at = 0; at < 10; at++) statuses.push((await api.post('/webhooks/approval/test')).status)
    expect(statuses.slice(0, 8)).toEqual(Array(8).fill(200))
    expect(statuses.slice(8)).toEqual([429, 429])
    expect(receiver.seen.length).toBe(10)
  } finally {
    await closeConnections()
    await receiver.close()
  }
})

test('the filters of the audit log list people and actions, for readers of the audit log only', async () => {
  const { body } = await api.get('/audit/choices')
  expect(body.who).toContain('admin')
  expect(body.what).toContain('config.changed')
  expect((await api.get('/audit/choices', { as: api.tokens.viewer })).status).toBe(403)
  expect((await api.get('/inventory/resources?needs=host:')).status).toBe(422)
})

test('a key that was inserted by SQL is listed with its problem', async () => {
  await sql`insert into platform_config (key, value) values ('agent.max_turms', '99')`.execute(api.owner)
  const { body } = await api.get('/config')
  expect(body.items).toContainEqual(expect.objectContaining({ key: 'agent.max_turms', problem: expect.any(String) }))
})

test('verify finds no unexplained change after actions through the product', async () => {
  const found = [...(await verifyChanges(api.db, 0)).differences, ...(await verifyKept(api.db)).differences]
  // Fixtures of tests claim incidents, and change rows as the owner.
  expect(found.filter(({ subject, what }) => !subject.startsWith('inc_') && !what.includes(' by postgres '))).toEqual(
    [],
  )
})
