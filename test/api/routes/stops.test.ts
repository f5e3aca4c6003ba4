import { expect, test } from '@jest/globals'
import type { Status } from '../../../domain/status.ts'
import { useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'

const api = useApi()
const reason = 'the replicas move'
const of = (type: string) => openedIncident(api.db, { labels: { alertname: 'x', incident_type: type } })
const stop = (body: object, as = api.tokens.approver) => api.post('/stops', { body: { reason, ...body }, as })

test('one press stops a kind of write, which is in the list, the status and the audit log until it is resumed', async () => {
  await of('replication_lag')
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const stopped = await stop({ type: 'replication_lag', tool: 'converge_shard', until })
  expect(stopped).toMatchObject({ status: 201, body: { stop: { by: 'approver', reason }, withdrawn: 0 } })
  expect((await api.get('/stops')).body.items).toMatchObject([{ tool: 'converge_shard', by: 'approver', reason }])
  const { parts } = (await api.get('/status')).body as unknown as Pick<Status, 'parts'>
  expect(parts.find(({ name }) => name === 'stopped writes')).toMatchObject({
    status: 'off',
    detail: expect.stringMatching(
      /^converge_shard in incidents of type replication_lag is stopped by approver until .*: the replicas move$/,
    ),
  })
  const path = `/stops/${(stopped.body as { stop?: { id?: string } }).stop?.id}/resume`
  expect(await api.post(path, { body: { reason: 'done' }, as: api.tokens.operator })).toMatchObject({ status: 403 })
  expect(await api.post(path, { body: { reason: 'done' } })).toMatchObject({ status: 200, body: { items: [] } })
  expect(await api.post(path, { body: { reason: 'done' } })).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('was resumed at') },
  })
  expect((await api.get('/audit?what=trust')).body.items).toMatchObject([
    { what: 'trust.resumed', who: 'admin', detail: expect.stringContaining('done') },
    { what: 'trust.stopped', who: 'approver', detail: expect.stringContaining(reason) },
  ])
})

test.each<[string, object, number, RegExp]>([
  ['a type that no incident had', { type: 'replication_lagg' }, 404, /Did you mean replication_lag\?/],
  [
    'a tool that there is not',
    { type: 'replication_lag', tool: 'converge_shards' },
    404,
    /Did you mean .*converge_shard/,
  ],
  ['a tool that only looks', { type: 'replication_lag', tool: 'get_shard' }, 404, /no tool that writes get_shard/],
  [
    'a resource that nobody lists',
    { type: 'replication_lag', resource: { kind: 'shard', id: 'db-mars-1' } },
    404,
    /no resource shard:db-mars-1: nothing was stopped/,
  ],
  ['what people do themselves', { type: 'manual_change' }, 409, /never covers writes that people request themselves/],
  [
    'an end that is over',
    { type: 'replication_lag', until: '2020-01-01T00:00:00Z' },
    422,
    /is in the past: the time is/,
  ],
])('%s is refused with the remedy, and stops nothing', async (_, body, status, detail) => {
  await of('replication_lag')
  const before = (await api.get('/stops')).body
  expect(await stop(body)).toMatchObject({ status, body: { detail: expect.stringMatching(detail) } })
  expect((await api.get('/stops')).body).toEqual(before)
})

test('a second press names who stopped it first, and an operator may not stop', async () => {
  await of('replication_lag')
  expect((await stop({ type: 'replication_lag' }, api.tokens.operator)).status).toBe(403)
  expect((await stop({ type: 'replication_lag' }, api.tokens.agent)).status).toBe(403)
  expect((await stop({ type: 'replication_lag' })).status).toBe(201)
  expect(await stop({ type: 'replication_lag' }, api.tokens.admin)).toMatchObject({
    status: 409,
    body: { detail: expect.stringContaining('stopped by approver until it is resumed: the replicas move') },
  })
})
