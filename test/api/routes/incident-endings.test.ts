import { afterEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { eventsOf } from '../../../db/log/events.ts'
import { runWatchdogRound } from '../../../effects/watchdog.ts'
import { useApi } from '../../support/api.ts'
import { claimedIncident, moveClock, openedIncident } from '../../support/database.ts'

const api = useApi()

afterEach(async () => {
  api.runs.answer = 'told'
  await moveClock(api.owner, '0 seconds')
  await sql`delete from platform_config`.execute(api.owner)
})

const take = (id: string, as = api.tokens.operator) => api.post(`/incidents/${id}/take`, { as })
const giveBack = (id: string, as = api.tokens.operator) => api.post(`/incidents/${id}/give-back`, { as })
const standing = async (id: string) => (await api.get(`/incidents/${id}`)).body
const refused = async (id: string, action: string, as = api.tokens.operator) => {
  const { actions } = (await api.get(`/incidents/${id}/surroundings`, { as })).body as unknown as {
    actions: { action: string; refused: string | null }[]
  }
  return actions.find((each) => each.action === action)?.refused
}

test('an incident that nobody works on belongs to a person at once, and the person can give it back', async () => {
  const id = await openedIncident(api.db)
  expect(await refused(id, 'give_back')).toBe('Nobody has taken the incident, so there is nothing to give back.')
  expect(await take(id)).toMatchObject({ status: 200, body: { status: 'escalated', owner: { name: 'operator' } } })
  expect([await refused(id, 'take'), await refused(id, 'take', api.tokens.admin)]).toEqual([
    'You have the incident already.',
    null,
  ])
  expect((await giveBack(id)).body).toMatchObject({ status: 'escalated', owner: null })
  expect(await giveBack(id)).toMatchObject({ status: 409, body: { code: 'NOT_TAKEN' } })
})

test('a run is asked to end first, and without a run the incident belongs to the person at once', async () => {
  const id = await claimedIncident(api.db)
  expect((await take(id)).body).toMatchObject({ status: 'investigating', owner: null })
  expect(api.told.at(-1)).toMatchObject({ signal: 'cancelInvestigation', incidentId: id })
  api.runs.answer = 'gone'
  expect((await take(id)).body).toMatchObject({ status: 'escalated', owner: { name: 'operator' } })
})

test('a second person takes over from the first', async () => {
  const id = await openedIncident(api.db)
  await take(id)
  expect((await take(id, api.tokens.approver)).body).toMatchObject({ owner: { name: 'approver' } })
})

test('only people who manage incidents can take one', async () => {
  const id = await openedIncident(api.db)
  for (const role of ['viewer', 'agent', 'ingest'] as const) {
    expect((await take(id, api.tokens[role])).status).toBe(403)
    expect((await giveBack(id, api.tokens[role])).status).toBe(403)
  }
  expect(await refused(id, 'take', api.tokens.viewer)).toBe('Your role (viewer) lacks the permission manage_incident.')
  expect(await standing(id)).toMatchObject({ status: 'open', owner: null })
})

test('a resolved incident cannot be taken', async () => {
  const id = await openedIncident(api.db)
  await api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Restarted by hand', outcome: 'repaired' } })
  expect((await take(id)).status).toBe(409)
  expect(await refused(id, 'take')).toMatch(/^The incident is resolved/)
})

test('a person who closes an incident has to name the outcome', async () => {
  const id = await openedIncident(api.db)
  const resolve = (body: object) =>
    api.post(`/incidents/${id}/resolve`, { body: { resolution: 'Looked at it', ...body } })
  expect((await resolve({})).status).toBe(422)
  expect((await resolve({ outcome: 'expected' })).status).toBe(422)
  expect((await resolve({ outcome: 'no_fault' })).body).toMatchObject({ status: 'resolved', outcome: 'no_fault' })
})

test('a cancellation suppresses an alert until its time, and a later alert is investigated', async () => {
  const id = await openedIncident(api.db)
  const hourAhead = sql<string>`nightshift_now() + interval '1 hour'`
  const { rows } = await sql<{ until: string }>`select ${hourAhead} as until`.execute(api.db)
  const until = rows[0]!.until
  const cancel = (body: object) => api.post(`/incidents/${id}/cancel`, { body: { reason: 'a drill', ...body } })
  expect((await cancel({ until: '2020-01-01T00:00:00Z' })).body.code).toBe('UNTIL_OUT_OF_RANGE')
  expect((await cancel({ until: '2099-01-01T00:00:00Z' })).body.code).toBe('UNTIL_OUT_OF_RANGE')
  const { cancelledUntil } = (await cancel({ until })).body as { cancelledUntil?: string }
  // It is stored as a span from the moment of the request: never before what was asked, and before
  // the clock is an hour on.
  expect(Date.parse(cancelledUntil ?? '')).toBeGreaterThanOrEqual(Date.parse(until) - 1)
  const { rows: after } = await sql<{ until: string }>`select ${hourAhead} as until`.execute(api.db)
  expect(Date.parse(cancelledUntil ?? '')).toBeLessThanOrEqual(Date.parse(after[0]!.until) + 1_000)
  await moveClock(api.owner, '2 hours')
  await runWatchdogRound(api.api.deps)
  expect(await standing(id)).toMatchObject({ status: 'open', reopened: 1, cancelledUntil: null })
})

test('a run that is cancelled until a time has this time in its row', async () => {
  const id = await claimedIncident(api.db)
  const until = new Date(Date.now() + 3_600_000).toISOString()
  await api.post(`/incidents/${id}/cancel`, { body: { reason: 'a drill', until } })
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({ metadata: { action: 'cancel_requested', until } })
})

test('an escalation names its category and the first step for people', async () => {
  const id = await openedIncident(api.db)
  const body = { reason: 'the disk is failing', category: 'no_tool', next_step: 'Order a disk' }
  expect((await api.post(`/incidents/${id}/escalate`, { body })).body).toMatchObject({ category: 'no_tool' })
  expect((await eventsOf(api.db, id)).at(-1)).toMatchObject({
    metadata: { report: { nextStep: 'Order a disk', found: ['the disk is failing'] } },
  })
})

test('a queued incident is not queued twice, and an incident that is left to people is investigated when a person asks', async () => {
  const queued = await openedIncident(api.db)
  expect(await refused(queued, 'investigate')).toBe('The incident is queued already.')
  expect((await api.post(`/incidents/${queued}/investigate`)).status).toBe(409)
  expect(await standing(queued)).toMatchObject({ status: 'open', reopened: 0 })

  await api.put('/config/agent.investigate', { body: { value: 'none' } })
  const kept = await openedIncident(api.db)
  expect(await standing(kept)).toMatchObject({ keptReason: expect.stringContaining('agent.investigate is none') })
  expect(await refused(kept, 'investigate')).toBeNull()
  expect((await api.post(`/incidents/${kept}/investigate`)).status).toBe(202)
  expect(await standing(kept)).toMatchObject({ status: 'open', keptReason: null, reopened: 0 })
  expect((await api.post(`/incidents/${kept}/investigate`)).status).toBe(409)
})

test('a grade of one cause does not apply to the cause of a newer attempt', async () => {
  const id = await claimedIncident(api.db)
  await api.post(`/incidents/${id}/escalate`, { body: { reason: 'needs hands' } })
  await api.owner.updateTable('incident').set({ attempt: 2 }).where('id', '=', id).execute()
  const grade = (attempt: number) =>
    api.post(`/incidents/${id}/grade`, { as: api.tokens.operator, body: { verdict: 'wrong', attempt } })
  expect(await grade(1)).toMatchObject({
    status: 409,
    body: { code: 'CONFLICT', detail: 'This was the cause of attempt 1: read the cause of the newest attempt.' },
  })
  expect(await grade(2)).toMatchObject({ status: 200, body: { cause: { verdict: 'wrong', by: 'operator' } } })
})
