import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { useApi } from './api.ts'

const api = useApi(() => ({ environment: { LLM_MAX_TURNS: '7' } }))

test('a value is set, takes effect, and its history tells who and why', async () => {
  const answer = await api.put('/config/agent.max_turns', { body: { value: '12', reason: 'disks need more' } })
  expect([answer.status, answer.headers.get('etag')]).toEqual([200, '"1"'])
  const effective = await api.get('/config/effective?type=disk_pressure')
  expect(effective.body.items).toContainEqual({
    ...{ name: 'agent.max_turns', key: 'agent.max_turns', value: 12, source: 'global', problem: null },
  })
  expect((await api.get('/config/agent.max_turns/revisions')).body.items).toMatchObject([
    { version: 1, oldValue: null, newValue: '12', actor: 'user:admin', reason: 'disks need more' },
  ])
})

test('of two people who change the same version one wins, and the other is told', async () => {
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

test('a value that does not fit and a key that no setting has are refused', async () => {
  const wrong = await api.put('/config/agent.max_turns', { body: { value: 'many' } })
  expect([wrong.status, wrong.body.code]).toEqual([422, 'INVALID'])
  expect((await api.put('/config/agent.no_such', { body: { value: '1' } })).status).toBe(404)
})

test('the environment stands between a stored value and the default', async () => {
  await sql`delete from platform_config where key = 'agent.max_turns'`.execute(api.owner)
  expect((await api.get('/config/effective')).body.items).toContainEqual({
    ...{ name: 'agent.max_turns', key: 'LLM_MAX_TURNS', value: 7, source: 'environment', problem: null },
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

test('a key that plain SQL put there is listed with its problem', async () => {
  await sql`insert into platform_config (key, value) values ('agent.max_turms', '99')`.execute(api.owner)
  const { body } = await api.get('/config')
  expect(body.items).toContainEqual(expect.objectContaining({ key: 'agent.max_turms', problem: expect.any(String) }))
})
