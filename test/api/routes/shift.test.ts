import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { shiftView } from '../../../domain/shift.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident } from '../../support/database.ts'

const api = useApi()

const shift = async () => shiftView.parse((await api.get('/shift')).body)

async function mitigated(): Promise<string> {
  const id = await claimedIncident(api.db)
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'half of it', category: 'mitigated' } })
  return id
}

test('the shift shows the night, the hand-over in five lines, and the open work', async () => {
  const id = await mitigated()
  const approval = await asked(api.db, await claimedIncident(api.db))
  const body = await shift()
  expect(body.morning.title).toMatch(/^Morning of \d{4}-\d\d-\d\d: /)
  expect(body.handOver.lines).toHaveLength(5)
  expect(body.handOver.lines[1]).toMatchObject({ path: `approvals/${approval}` })
  expect(body.followUps).toMatchObject({ count: 1, first: [{ incidentId: id, owner: null, isOverdue: false }] })
})

test('a lost duty is on the hand-over as soon as a check finds it, whether or not people were notified', async () => {
  expect((await shift()).handOver.lines[3]?.text).toBe('Nightshift: no part has failed')
  const id = await claimedIncident(api.db)
  await sql`insert into delivery (message_id, destination, incident_id, notification, attempt, status, finished_at, given_up_at)
    values ('msg_1', 'webhook.critical', ${id}, '{}', 1, 'dropped', nightshift_now(), nightshift_now())`.execute(
    api.owner,
  )
  expect((await shift()).handOver.lines[3]?.text).toBe('Nightshift: failed parts: messages')
})

test('a person changes and closes a follow-up, and an agent and a viewer cannot', async () => {
  const id = await mitigated()
  const change = (body: object, as = api.tokens.approver) => api.post(`/follow-ups/${id}`, { body, as })
  expect((await change({ owner: 'approver' }, api.tokens.agent)).status).toBe(403)
  expect((await change({ owner: 'approver' }, api.tokens.viewer)).status).toBe(403)
  expect((await change({ owner: 'approver', dueOn: '2020-01-01' })).body).toMatchObject({
    owner: 'approver',
    dueOn: '2020-01-01',
    isOverdue: true,
  })
  expect((await change({ group: 'storage' })).body).toMatchObject({ owner: null, group: 'storage' })
  expect((await api.get(`/follow-ups/${id}`)).body).toMatchObject({
    group: 'storage',
    dueOn: '2020-01-01',
    closedAt: null,
  })
  const closed = await api.post(`/follow-ups/${id}/close`, { body: { note: 'done' }, as: api.tokens.approver })
  expect(closed.body).toMatchObject({ closedBy: 'approver', isOverdue: false })
  expect((await api.get(`/follow-ups/${id}`)).body).toEqual(closed.body)
  expect((await shift()).followUps.first.map(({ incidentId }) => incidentId)).not.toContain(id)
})

test.each([
  [{ owner: 'zoe' }, 422, 'owner is not a user who may sign in: "nightshift operators list" lists the users.'],
  [{ dueOn: '2026-02-30' }, 422, 'is not a day such as 2026-11-21'],
  [{ group: '  ' }, 422, 'has only blanks'],
])('the change %j is refused: %i %s', async (body, status, why) => {
  const answer = await api.post(`/follow-ups/${await mitigated()}`, { body, as: api.tokens.approver })
  expect(answer.status).toBe(status)
  expect(JSON.stringify(answer.body)).toContain(JSON.stringify(why).slice(1, -1))
})

test('a closed follow-up and an unknown follow-up are refused with the reason', async () => {
  const id = await mitigated()
  const close = (of: string) => api.post(`/follow-ups/${of}/close`, { body: { note: 'done' } })
  expect((await close(id)).status).toBe(200)
  expect(await close(id)).toMatchObject({ status: 409, body: { detail: 'This follow-up is closed.' } })
  expect((await close('inc_none')).status).toBe(404)
  expect((await api.get('/follow-ups/inc_none')).status).toBe(404)
  expect((await api.post(`/follow-ups/${id}/close`, { body: { note: 'x' } })).status).toBe(422)
})

test.each([
  ['page.night', '22:00-07:00', 'has no time zone after its hours: 22:00-07:00 Europe/Oslo'],
  ['page.wake_budget', '', 'must be a number of questions, 0 to 99, or off'],
  ['page.wake_budget', '-1', 'must be a number of questions, 0 to 99, or off'],
  ['hand_over.at', '06:00 25:00 UTC', '"25:00" is not a time of day: write it as 06:00'],
  ['morning.card', 'never', 'news'],
])('the setting %s refuses "%s" with the remedy', async (key, value, why) => {
  const { status, body } = await api.put(`/config/${key}`, { body: { value, reason: 'a test' } })
  expect(status).toBe(422)
  expect(JSON.stringify(body)).toContain(JSON.stringify(why).slice(1, -1))
  const { rows } = await sql`select from platform_config where key = ${key}`.execute(api.db)
  expect(rows).toEqual([])
})
