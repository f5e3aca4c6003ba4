import { beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { putOperator } from '../../../db/access/operators.ts'
import { listAsked } from '../../../db/approvals/on-call.ts'
import { passOnPending } from '../../../db/approvals/pass-on.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { systemScope } from '../../../db/scope.ts'
import type { Notification } from '../../../domain/notification.ts'
import type { ResourceRef } from '../../../domain/registry.ts'
import { asked } from '../../support/announced.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'

const database = useDatabase()
const targets: ResourceRef[] = [{ kind: 'database', id: 'orders' }]

beforeEach(async () => {
  await sql`delete from platform_config; delete from destination; update approval set status = 'withdrawn', decided_at = now() where status = 'pending'`.execute(
    database.owner,
  )
  for (const name of ['anna', 'ben', 'cleo', 'dora']) await person(name)
})

async function person(
  name: string,
  more: { disabled?: boolean; rights?: string[]; maxRisk?: 'none' | 'critical' } = {},
) {
  const base = {
    name,
    role: 'approver',
    maxRisk: 'critical',
    incidentTypes: null,
    disabled: false,
    rights: [],
  } as const
  const { now } = await database.db.transaction().execute((trx) => putOperator(trx, { ...base, ...more }))
  await sql`insert into push_subscription (id, operator_id, endpoint, p256dh, auth, name)
    values (${`psh_${name}`}, ${now.id}, ${`https://push.example/${name}`}, 'k', 'a', 'phone') on conflict do nothing`.execute(
    database.owner,
  )
}

const listed = async (text: string) =>
  await sql`insert into platform_config (key, value) values ('approval.on_call', ${text})`.execute(database.owner)

async function question() {
  const incidentId = await claimedIncident(database.db)
  return { incidentId, id: await asked(database.db, incidentId, { targets, expirySeconds: 3_600 }) }
}

const people = async (id: string) => (await listAsked(systemScope(database.db), id)).map(({ name }) => name)

/** Five minutes later, as far as the question knows. */
async function fiveMinutesLater(): Promise<number> {
  await sql`update approval_asked set at = at - interval '5 minutes'`.execute(database.owner)
  return await passOnPending(database.db)
}

async function pushedTo(incidentId: string): Promise<string[]> {
  const { rows } = await sql<{ destination: string }>`select destination from delivery
    where incident_id = ${incidentId} and destination like 'push.%' order by created_at, destination`.execute(
    database.owner,
  )
  return rows.map(({ destination }) => destination.slice('push.psh_'.length))
}

test('a question travels to its third person, each has five minutes, and the log records it', async () => {
  await listed('database:* -> anna ben cleo dora')
  const { id, incidentId } = await question()
  expect(await people(id)).toEqual(['anna'])
  expect(await passOnPending(database.db)).toBe(0)
  expect([await fiveMinutesLater(), await fiveMinutesLater(), await fiveMinutesLater()]).toEqual([1, 1, 0])
  expect(await people(id)).toEqual(['anna', 'ben', 'cleo'])
  expect(await pushedTo(incidentId)).toEqual(['anna', 'ben', 'cleo'])
  const noted = (await eventsOf(database.db, incidentId)).filter(({ kind }) => kind === 'noted')
  expect(noted.map(({ detail }) => detail)).toEqual([
    'Asked ben: no answer from anna for 5 minutes',
    'Asked cleo: no answer from ben for 5 minutes',
  ])
})

test('several workers pass a question on once', async () => {
  await listed('-> anna ben')
  const { id } = await question()
  await sql`update approval_asked set at = at - interval '5 minutes'`.execute(database.owner)
  const passed = await Promise.all(Array.from({ length: 8 }, () => passOnPending(database.db)))
  expect(passed.reduce((sum, each) => sum + each, 0)).toBe(1)
  expect(await people(id)).toEqual(['anna', 'ben'])
})

test('a person who has no right, is disabled, unknown, or has voted is skipped', async () => {
  await person('anna', { disabled: true })
  await person('ben', { maxRisk: 'none', rights: ['critical host:*'] })
  await listed('-> anna nobody-here ben cleo dora')
  const { id } = await question()
  expect(await people(id)).toEqual(['cleo'])
  await sql`insert into approval_decision (approval_id, operator_id, decision, via)
    select ${id}, id, 'approve', 'api' from operator where name = 'dora'`.execute(database.owner)
  expect(await fiveMinutesLater()).toBe(0)
})

test('a decided or expired question is not passed on', async () => {
  await listed('-> anna ben')
  const [decided, over] = [await question(), await question()]
  await sql`update approval set status = 'denied', decided_at = now() where id = ${decided.id}`.execute(database.owner)
  await sql`update approval set expires_at = now() - interval '1 second' where id = ${over.id}`.execute(database.owner)
  expect(await fiveMinutesLater()).toBe(0)
})

test.each([
  ['without a list', async () => undefined],
  ['where no rule fits', async () => await listed('host:* -> anna')],
  [
    'where PagerDuty asks one after the other itself',
    async () => {
      await listed('-> anna ben')
      await sql`insert into destination (name, kind, route, enabled, options, secrets, created_by) values ('pd', 'pagerduty', '{"severities":null,"types":null,"triggers":null,"hours":null}', true, '{}', '{}', 'admin')`.execute(
        database.owner,
      )
    },
  ],
])('%s everybody who may decide is notified at once, and nobody in turn', async (_, prepare) => {
  await prepare()
  const { id, incidentId } = await question()
  expect(await people(id)).toEqual([])
  expect(await pushedTo(incidentId)).toEqual(['anna', 'ben', 'cleo', 'dora'])
})

test('the message names whose turn it is', async () => {
  await listed('-> anna ben')
  const { incidentId } = await question()
  const { rows } = await sql<{ notification: Notification }>`select notification from delivery
    where incident_id = ${incidentId} and destination like 'push.%'`.execute(database.owner)
  expect(rows[0]?.notification.approval?.of).toEqual({ name: 'anna', slackUserId: null })
})
