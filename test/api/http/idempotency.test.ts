import { expect, test } from '@jest/globals'
import { Hono } from 'hono'
import type { Env } from '../../../api/deps.ts'
import { idempotent } from '../../../api/http/idempotency.ts'
import { sha256 } from '../../../domain/digest.ts'
import { useApi } from '../../support/api.ts'
import { openedIncident } from '../../support/database.ts'

const api = useApi()
const incident = { type: 'disk_pressure', severity: 'warning', title: 'The disk feels full' }

test('the same request sent twice opens one incident and gets the same answer', async () => {
  const first = await api.post('/incidents', { body: incident, key: 'twice' })
  const again = await api.post('/incidents', { body: incident, key: 'twice' })
  expect([first.status, again.status]).toEqual([201, 201])
  expect(again.body).toEqual(first.body)
})

test('ten requests at once with one key open one incident', async () => {
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => api.post('/incidents', { body: incident, key: 'race' })),
  )
  expect(new Set(answers.filter(({ status }) => status === 201).map(({ body }) => body.id)).size).toBe(1)
  for (const { status, body } of answers) if (status !== 201) expect([status, body.code]).toEqual([409, 'IN_PROGRESS'])
})

test('the order of keys does not change a body, so what a database returned is the same request', async () => {
  const first = await api.post('/incidents', { body: incident, key: 'order' })
  const again = await api.post('/incidents', {
    body: Object.fromEntries(Object.entries(incident).reverse()),
    key: 'order',
  })
  expect([again.status, again.body]).toEqual([201, first.body])
})

test('a key that 0.2.0 stored with the digest of the text gets the same answer', async () => {
  const first = await api.post('/incidents', { body: incident, key: 'older' })
  const bodyDigest = sha256(JSON.stringify(incident))
  await api.db.updateTable('idempotency').set({ bodyDigest }).where('key', '=', 'older').execute()
  const again = await api.post('/incidents', { body: incident, key: 'older' })
  expect([again.status, again.body]).toEqual([201, first.body])
})

test('an answer that means "not now" is not stored, so the same key is accepted later', async () => {
  const app = new Hono<Env>()
  app.use(async (c, next) => {
    const { tokenId } = await api.db.selectFrom('idempotency').select('tokenId').limit(1).executeTakeFirstOrThrow()
    c.set('principal', { tokenId } as never)
    await next()
  })
  const statuses = [429, 200]
  app.post('/busy', idempotent(api.db), (c) => c.json({ done: true }, statuses.shift() as 200))
  const send = async () => {
    const answer = await app.request('/busy', { method: 'POST', headers: { 'idempotency-key': 'later' }, body: '{}' })
    return [answer.status, answer.headers.get('idempotency-replayed')]
  }
  expect([await send(), await send(), await send()]).toEqual([
    [429, null],
    [200, null],
    [200, 'true'],
  ])
})

test('a key that was used for another body is refused', async () => {
  await api.post('/incidents', { body: incident, key: 'other' })
  const answer = await api.post('/incidents', { body: { ...incident, title: 'Something else' }, key: 'other' })
  expect([answer.status, answer.body.code]).toEqual([422, 'IDEMPOTENCY_KEY_REUSED'])
})

test('the same key of another person or at another operation is another key', async () => {
  const mine = await api.post('/incidents', { body: incident, key: 'shared' })
  const theirs = await api.post('/incidents', { body: incident, key: 'shared', as: api.tokens.operator })
  expect(theirs.body.id).not.toBe(mine.body.id)
  const id = await openedIncident(api.db)
  const answer = await api.post(`/incidents/${id}/escalate`, { body: { reason: 'over to you' }, key: 'shared' })
  expect(answer.status).toBe(200)
})

test('an invalid key is refused', async () => {
  expect((await api.post('/incidents', { body: incident, key: 'a b' })).status).toBe(422)
  expect((await api.post('/incidents', { body: incident, key: 'x'.repeat(256) })).status).toBe(422)
})

test('a request that failed inside Nightshift can be sent again with its key', async () => {
  await api.owner.schema.alterTable('incident').renameTo('incident_away').execute()
  const failed = await api.post('/incidents', { body: incident, key: 'again' })
  await api.owner.schema.alterTable('incident_away').renameTo('incident').execute()
  expect([failed.status, failed.body.code]).toEqual([500, 'INTERNAL'])
  expect((await api.post('/incidents', { body: incident, key: 'again' })).status).toBe(201)
})
