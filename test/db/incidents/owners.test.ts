import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ensureOperator } from '../../../db/access/tokens.ts'
import { markIncidentExpected } from '../../../db/alerts/expectations.ts'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import { type Closing, closeIncident } from '../../../db/incidents/close-incident.ts'
import { claimIncident, incidentById } from '../../../db/incidents/incidents.ts'
import { leaseLooks, recordLook } from '../../../db/incidents/looks.ts'
import { handOver, takeIncident } from '../../../db/incidents/owners.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { agentActor } from '../../../domain/event.ts'
import { anAlert, moveClock, openedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()
let passed = 0

beforeEach(async () => {
  passed = 0
  await moveClock(database.owner, '0 seconds')
  await sql`delete from platform_config`.execute(database.db)
})

async function pass(seconds: number): Promise<string> {
  passed += seconds
  await moveClock(database.owner, `${passed} seconds`)
  const { rows } = await sql<{ now: string }>`select nightshift_now() as now`.execute(database.db)
  return rows[0]?.now ?? ''
}

const anna = async () => ({
  operatorId: await ensureOperator(database.db, 'anna', 'operator'),
  actor: 'user:anna',
  name: 'anna',
})
const take = async (id: string) => {
  const by = await anna()
  return await database.db.transaction().execute((trx) => takeIncident(trx, id, by))
}
const close = (id: string, closing: Closing, actor: string) =>
  database.db.transaction().execute((trx) => closeIncident(trx, id, null, closing, { actor, stepKey: null }))
const standing = (id: string) => incidentById(database.db, id)
const setting = (key: string, value: string) =>
  sql`insert into platform_config (key, value) values (${key}, ${value})`.execute(database.db)
const told = async (id: string) => {
  const rows = await database.db
    .selectFrom('delivery')
    .select(['notification'])
    .where('incidentId', '=', id)
    .orderBy('id')
    .execute()
  return rows.map(({ notification }) => notification as { trigger: string; page: boolean; reason: string })
}

const byHand: Closing = {
  status: 'resolved',
  outcome: 'repaired',
  resolution: 'restarted by hand',
  claims: [],
  confidence: null,
}
const escalated: Closing = { status: 'escalated', code: 'AGENT', reason: 'a person has to look' }

/** An incident at work, as a run has claimed it. */
async function atWork(): Promise<string> {
  const id = await openedIncident(database.db)
  const workflowId = `investigate:${id}:1`
  const claim = {
    incidentId: id,
    attempt: 1,
    workflowId,
    role: 'leader',
    groupId: 'grp',
    timeBudgetSeconds: 60,
  } as const
  await database.db.transaction().execute((trx) => claimIncident(trx, claim))
  return id
}

test.each([
  ['resolved', byHand],
  ['cancelled', { status: 'cancelled', reason: 'a planned failover' } as Closing],
] as const)('an incident that is %s has no owner', async (_, closing) => {
  const id = await openedIncident(database.db)
  // A cancellation takes an incident at work; what somebody has is escalated.
  if (closing.status === 'resolved') await take(id)
  else
    await sql`update incident set owner_id = ${(await anna()).operatorId}, owned_at = nightshift_now() where id = ${id}`.execute(
      database.owner,
    )
  await close(id, closing, 'user:anna')
  expect(await standing(id)).toMatchObject({ status: closing.status, owner: null })
})

test('a run that escalates by itself while a person asks for the incident gives it to this person', async () => {
  await setting('webhook.escalated.url', 'http://127.0.0.1:9/escalated')
  const id = await atWork()
  expect(await take(id)).toMatchObject({ taken: false })
  await close(id, escalated, agentActor)
  expect(await standing(id)).toMatchObject({ status: 'escalated', owner: { name: 'anna' } })
  expect((await eventsOf(database.db, id)).at(-1)).toMatchObject({ kind: 'noted', metadata: { code: 'taken' } })
  // She asked for it: nobody else is woken.
  expect(await told(id)).toEqual([])
})

test('an incident that was escalated before a take is carried out belongs to the person', async () => {
  const id = await openedIncident(database.db)
  await close(id, escalated, agentActor)
  const by = await anna()
  await database.db.transaction().execute((trx) => handOver(trx, id, null, by))
  expect(await standing(id)).toMatchObject({ status: 'escalated', owner: { name: 'anna' } })
})

test('an incident that is left to people is not investigated because its alert returns', async () => {
  await setting('agent.investigate', 'none')
  const startsAt = await pass(0)
  const alert = anAlert({ startsAt })
  const { incidentId } = await ingestAlert(database.db, alert)
  const id = incidentId ?? ''
  await close(id, byHand, 'user:anna')
  await ingestAlert(database.db, { ...alert, status: 'resolved', endsAt: await pass(60) })
  await ingestAlert(database.db, { ...alert, startsAt: await pass(60) })
  expect(await standing(id)).toMatchObject({
    status: 'open',
    reopened: 1,
    keptReason: 'agent.investigate is none for incidents of this type',
  })
})

/** Marked as expected; then its alert ends and fires again within the time of the mark. */
async function expectedAgain(): Promise<string> {
  await setting('webhook.news.url', 'http://127.0.0.1:9/news')
  const startsAt = await pass(0)
  const alert = anAlert({ startsAt })
  const id = (await ingestAlert(database.db, alert)).incidentId ?? ''
  const by = await anna()
  const subject = { subject: 'alert' as const, source: alert.source, fingerprint: alert.fingerprint }
  const until = new Date(Date.parse(startsAt) + 86_400_000).toISOString()
  await database.db
    .transaction()
    .execute((trx) => markIncidentExpected(trx, id, { ...subject, until, reason: 'a backup', state: {} }, by))
  await ingestAlert(database.db, { ...alert, status: 'resolved', endsAt: await pass(60) })
  await ingestAlert(database.db, { ...alert, startsAt: await pass(60) })
  return id
}

async function look(differs: string | null): Promise<void> {
  for (const each of await leaseLooks(database.db, 10)) {
    const seen = { verification: null, resource: null, about: [], observed: 'seen by the test', state: null }
    await recordLook(database.db, each, { purpose: each.purpose, ...seen }, differs)
  }
}

test('an alert that returns as expected notifies nobody', async () => {
  const id = await expectedAgain()
  await look(null)
  expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'expected' })
  expect(await told(id)).toEqual([])
})

test('an alert that returns with another state notifies people once, with the difference', async () => {
  const id = await expectedAgain()
  await look('it was nominal and is degraded')
  expect(await standing(id)).toMatchObject({ status: 'open' })
  expect(await told(id)).toMatchObject([
    { trigger: 'reopened', reason: 'Marked as expected, but its state differs: it was nominal and is degraded' },
  ])
})

test('nobody is woken because an alert ended', async () => {
  await setting('webhook.escalated.url', 'http://127.0.0.1:9/escalated')
  await setting('webhook.news.url', 'http://127.0.0.1:9/news')
  const startsAt = await pass(0)
  const alert = anAlert({ startsAt })
  const id = (await ingestAlert(database.db, alert)).incidentId ?? ''
  await close(id, escalated, agentActor)
  await ingestAlert(database.db, { ...alert, status: 'resolved', endsAt: await pass(60) })
  expect(await told(id)).toMatchObject([
    { trigger: 'escalated', page: true },
    { trigger: 'quiet', page: false },
  ])
})
