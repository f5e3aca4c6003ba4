import { expect, test } from '@jest/globals'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { openIncident } from '../../../db/incidents/incidents.ts'
import { announced, asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { anAlert, claimedIncident, storeSetting } from '../../support/database.ts'

const api = useApi()
type Items = { items: Record<string, unknown>[]; nextCursor: string | null }
const list = async (path: string, as?: string) => (await api.get(path, { as })).body as unknown as Items

test('alerts are listed newest first, with what was read from the source, page by page', async () => {
  await ingestAlert(api.db, anAlert({ fingerprint: 'a', title: 'Disk 96% full' }))
  await ingestAlert(api.db, anAlert({ fingerprint: 'a' }))
  await ingestAlert(api.db, anAlert({ fingerprint: 'b', name: 'host_down', title: 'Host_down' }))
  const all = await list('/alerts')
  expect(all.items.map(({ fingerprint, count }) => [fingerprint, count])).toEqual([
    ['b', 1],
    ['a', 2],
  ])
  expect(all.items[1]).toMatchObject({
    raw: { title: 'Disk 96% full' },
    incidentId: expect.stringMatching(/^inc_/),
  })
  const first = await list('/alerts?limit=1')
  expect((await list(`/alerts?limit=1&cursor=${first.nextCursor}`)).items).toMatchObject([{ fingerprint: 'a' }])
  expect((await list('/alerts?q=96%25')).items).toHaveLength(1)
  expect((await list('/alerts?status=resolved')).items).toEqual([])
})

test('a list of incidents shows the latest event of each, and can be filtered by group', async () => {
  const id = await claimedIncident(api.db)
  await announced(api.db, id, 'get_shard', {})
  const { items } = await list('/incidents')
  const found = items.find((each) => each.id === id)
  expect(found).toMatchObject({ lastEvent: { kind: 'tool_started', detail: 'Calling tool: get_shard' } })
  const group = await list(`/incidents?group=${found?.groupId}`)
  expect(group.items.map((each) => each.id)).toEqual([id])
  expect((await list(`/incidents?group=${found?.groupId}&role=follower`)).items).toEqual([])
})

test('an incident lists what the caller may do now, and why the other actions are closed', async () => {
  const id = await claimedIncident(api.db)
  const actions = async (as: string) => {
    const { body } = await api.get(`/incidents/${id}/surroundings`, { as })
    const rows = body.actions as unknown as { action: string; refused: string | null }[]
    return Object.fromEntries(rows.map(({ action, refused }) => [action, refused]))
  }
  expect(await actions(api.tokens.admin)).toEqual({
    resolve: null,
    escalate: null,
    cancel: null,
    comment: null,
    tell: null,
    take: null,
    expected: null,
    give_back: 'Nobody has taken the incident, so there is nothing to give back.',
    investigate: 'The incident is investigating, and this action needs the status resolved or escalated or cancelled.',
    review: 'No review of the incident is pending.',
  })
  expect((await actions(api.tokens.viewer)).cancel).toBe('Your role (viewer) lacks the permission manage_incident.')
  expect((await api.get('/incidents/inc_none/surroundings')).status).toBe(404)
})

test('usage counts models, people and days', async () => {
  await asked(api.db, await claimedIncident(api.db))
  const { body } = await api.get('/usage?days=2')
  expect(body.byDay).toHaveLength(2)
  expect(body.approvals).toMatchObject([{ status: 'pending', count: 1, medianWaitSeconds: null }])
  expect((await api.get('/usage?days=0')).status).toBe(422)
})

test('the status shows what waits and what is missing', async () => {
  const waiting = { type: 'disk', severity: 'info', severitySource: 'alert', title: 'x', resource: null } as const
  await api.db.transaction().execute((trx) => openIncident(trx, { ...waiting, requestedBy: null }))
  const { status, body } = await api.get('/status')
  expect(status).toBe(200)
  expect(body.backlog).toMatchObject({ oldestWaitingAt: expect.any(String) })
  const parts = body.parts as unknown as { name: string; status: string }[]
  expect(Object.fromEntries(parts.map((part) => [part.name, part.status]))).toEqual({
    database: 'ok',
    Temporal: 'ok',
    worker: 'unknown',
    retention: 'ok',
    queue: 'unknown',
    platform: 'off',
    model: 'unknown',
    knowledge: 'unknown',
    alerts: 'ok',
    'large bodies': 'ok',
    messages: 'ok',
    questions: 'off',
  })
})

test('a wake budget without a morning card is reported, with the remedy', async () => {
  await storeSetting(api.owner, 'page.wake_budget', '1')
  const idle = async () => {
    const { parts } = (await api.get('/status')).body as unknown as {
      parts: { name: string; detail: string; remedy: string }[]
    }
    return parts.find(({ name }) => name === 'wake budget') ?? null
  }
  // A destination that took the morning card alone would get no question.
  expect(await idle()).toMatchObject({
    detail: expect.stringContaining('no destination gets the morning card'),
    remedy: expect.not.stringContaining('--triggers morning'),
  })
  await storeSetting(api.owner, 'webhook.news.url', 'http://127.0.0.1:9/news')
  expect(await idle()).toBeNull()
  await storeSetting(api.owner, 'morning.card', 'off')
  expect(await idle()).toMatchObject({
    detail: expect.stringContaining('morning.card is off'),
    remedy: expect.stringContaining('config set morning.card news'),
  })
})

test('people and agents can read what a page reads, and senders of alerts cannot', async () => {
  for (const path of ['/alerts', '/usage', '/status']) {
    expect((await api.get(path, { as: api.tokens.ingest })).status).toBe(403)
  }
})
