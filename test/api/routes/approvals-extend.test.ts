import { expect, test } from '@jest/globals'
import { readDecision } from '../../../db/approvals/settle.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, moveClock } from '../../support/database.ts'

const api = useApi()
const extend = (id: string, as = api.tokens.approver) => api.post(`/approvals/${id}/extend`, { as })
const expiryOf = async (id: string) =>
  Date.parse((await api.get(`/approvals/${id}`)).body.expiresAt as unknown as string)

test('a person who may decide gives an approval 15 more minutes, with a row in the log and one in the audit log', async () => {
  const incidentId = await claimedIncident(api.db)
  const id = await asked(api.db, incidentId)
  const before = await expiryOf(id)
  const { status, body } = await extend(id)
  expect({ status, body }).toMatchObject({ status: 200, body: { approvalId: id } })
  expect((await expiryOf(id)) - before).toBe(900_000)
  const rows = await eventsOf(api.db, incidentId)
  expect(rows.at(-1)).toMatchObject({
    kind: 'noted',
    actor: 'user:approver',
    metadata: { code: 'approval_extended' },
  })
  expect((await api.get('/audit?what=approval')).body.items).toMatchObject([
    { who: 'approver', what: 'approval.extended', subject: id },
  ])
})

test('nobody can extend an approval beyond four hours after it was asked', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { expirySeconds: 4 * 3600 - 60 })
  const before = await expiryOf(id)
  expect((await extend(id)).status).toBe(200)
  expect((await expiryOf(id)) - before).toBe(60_000)
  expect(await extend(id)).toMatchObject({ status: 409, body: { code: 'CONFLICT' } })
})

test('an approval that a setting keeps open for longer is never shortened by an extension', async () => {
  const id = await asked(api.db, await claimedIncident(api.db), { expirySeconds: 86_400 })
  const before = await expiryOf(id)
  expect((await extend(id)).status).toBe(409)
  expect(await expiryOf(id)).toBe(before)
})

test.each(['viewer', 'operator', 'agent', 'ingest'] as const)('%s may not extend an approval', async (role) => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const before = await expiryOf(id)
  expect((await extend(id, api.tokens[role])).status).toBe(403)
  expect(await expiryOf(id)).toBe(before)
})

test('a person whose limit excludes the risk of an approval may not extend it', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  await api.owner.updateTable('operator').set({ maxRisk: 'medium' }).where('name', '=', 'approver').execute()
  expect((await extend(id)).status).toBe(403)
  await api.owner.updateTable('operator').set({ maxRisk: 'critical' }).where('name', '=', 'approver').execute()
  expect((await extend(id)).status).toBe(200)
})

test('a decided approval cannot be extended, and an unknown approval is not found', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const as = api.tokens.approver
  const { token } = (await api.post(`/approvals/${id}/token`, { as, body: { decision: 'deny' } })).body
  await api.post(`/approvals/${id}/decision`, { as, body: { decision: 'deny', token } })
  expect((await extend(id)).status).toBe(410)
  expect((await extend('apr_nothing')).status).toBe(404)
})

// Last: the clock of this database stays moved.
test('a run that checks after the first expiry finds the approval pending with its new expiry, and a late extension changes nothing', async () => {
  const id = await asked(api.db, await claimedIncident(api.db))
  const late = await asked(api.db, await claimedIncident(api.db))
  await extend(id)
  await moveClock(api.owner, '11 minutes')
  const read = await readDecision(api.db, id)
  expect(read?.status).toBe('pending')
  expect(read?.remainingMs).toBeGreaterThan(13 * 60_000)
  expect((await extend(late)).status).toBe(410)
  expect((await readDecision(api.db, late))?.status).toBe('expired')
})
