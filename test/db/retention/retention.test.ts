import { beforeAll, beforeEach, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ingestAlert } from '../../../db/alerts/ingest-body.ts'
import type { Trx } from '../../../db/connect.ts'
import { closeIncident } from '../../../db/incidents/close-incident.ts'
import { append } from '../../../db/log/append.ts'
import { verifyAudit } from '../../../db/log/audit.ts'
import { storeBody } from '../../../db/log/bodies.ts'
import { daysOf, retentionIsLate } from '../../../db/retention/preview.ts'
import { removeOld } from '../../../db/retention/remove.ts'
import { storedSettings } from '../../../db/settings.ts'
import { verifyGrants } from '../../../db/verify/grants.ts'
import { verifyIncident } from '../../../db/verify/incident.ts'
import { verifyGone, verifyRemovals } from '../../../db/verify/removals.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import { agentActor } from '../../../domain/event.ts'
import { asked } from '../../support/announced.ts'
import { useApi } from '../../support/api.ts'
import { anAlert, moveClock, openedIncident } from '../../support/database.ts'
import { claimed } from '../verify/life.ts'

const api = useApi()
const running = new AbortController().signal
const resolved = {
  status: 'resolved' as const,
  outcome: 'repaired' as const,
  resolution: 'It reads again.',
  claims: [],
  confidence: null,
}

/**
 * An incident of this name that a run took up and repaired, whose alert ended; with a body that its
 * log names.
 */
async function anEndedOne(name: string, body = `what ${name} said`): Promise<string> {
  const alert = anAlert({ name, labels: { alertname: name } })
  const { incidentId } = await ingestAlert(api.db, alert)
  const id = incidentId as string
  await api.db.transaction().execute(async (trx) => {
    await claimed(trx, id)
    await append(trx, id, 1, {
      ...{ kind: 'model_answered', actor: agentActor, turn: 1, detail: 'It looks.' },
      metadata: { body: await storeBody(trx, body) } as never,
    })
    await closeIncident(trx, id, 1, resolved, { actor: agentActor, stepKey: null })
  })
  await ingestAlert(api.db, { ...alert, status: 'resolved', endsAt: new Date().toISOString() })
  await sql`update incident set watch_until = null, look_wanted = null where id = ${id}`.execute(api.db)
  await sql`update delivery set status = 'sent', finished_at = nightshift_now()`.execute(api.owner)
  return id
}

/** Everything that `nightshift verify --all` holds, one line a difference. */
async function differences(db: Trx | typeof api.db): Promise<string[]> {
  const found = [
    await verifyChanges(db, 0),
    await verifyRemovals(db, 0),
    await verifyGone(db),
    await verifyKept(db),
    await verifyGrants(db),
  ]
  for (const { id } of await db.selectFrom('incident').select('id').execute()) found.push(await verifyIncident(db, id))
  const audit = await verifyAudit(db)
  return [
    ...found.flatMap((each) => each.differences.map(({ subject, what }) => `${subject}: ${what}`)),
    ...(audit.problem ? [audit.problem.what] : []),
  ]
}

const isThere = async (id: string) =>
  (await api.db.selectFrom('incident').select('id').where('id', '=', id).execute()).length === 1

beforeAll(async () => await moveClock(api.owner, '0 days'))
beforeEach(async () => {
  await moveClock(api.owner, '0 days')
  for (const kind of ['incidents', 'alerts']) await api.put(`/config/retention.${kind}`, { body: { value: '400' } })
})

test('a round that never began is late after a day, like a round that never ended', async () => {
  await moveClock(api.owner, '2 days')
  expect(await retentionIsLate(api.db, 24)).not.toBeNull()
  await removeOld(api.db, running)
  expect(await retentionIsLate(api.db, 24)).toBeNull()
})

test('a closed incident is removed whole when it is old enough, and its tombstone records it', async () => {
  const id = await anEndedOne('old_one')
  await removeOld(api.db, running)
  expect(await isThere(id)).toBe(true)
  await moveClock(api.owner, '401 days')
  expect((await removeOld(api.db, running)).incidents).toBe(1)
  expect(await isThere(id)).toBe(false)
  for (const table of ['incident_event', 'alert', 'approval', 'delivery'])
    expect((await sql`select from ${sql.table(table)} where incident_id = ${id}`.execute(api.db)).rows).toHaveLength(0)
  const answer = await api.get(`/incidents/${id}`)
  expect(answer).toMatchObject({ status: 404 })
  expect(answer.body.detail).toMatch(
    /^Incident inc_\w+ was removed by retention on \d{4}-\d\d-\d\d under retention.incidents = 400 days\.$/,
  )
  expect(await differences(api.db)).toEqual([])
  expect((await api.get('/verify?limit=100')).body).toMatchObject({ differences: [], nextCursor: null })
})

test('an incident that is open, fires, waits for a person or is held stays at any age, and a released one is removed', async () => {
  const [open, fires, asking, held] = [
    await openedIncident(api.db, { name: 'open_one', labels: { alertname: 'open_one' } }),
    await anEndedOne('fires_one'),
    await anEndedOne('asking_one'),
    await anEndedOne('held_one'),
  ]
  await sql`update alert set status = 'unknown', unknown_since = nightshift_now() where incident_id = ${fires}`.execute(
    api.owner,
  )
  await asked(api.db, asking).catch(() => {})
  await sql`update incident set review_wanted_at = nightshift_now() where id = ${asking}`.execute(api.owner)
  expect(await api.post(`/incidents/${held}/hold`, { body: { reason: 'The insurer asks.' } })).toMatchObject({
    status: 201,
  })
  expect(await api.post(`/incidents/${held}/hold`, { body: { reason: 'Once more.' } })).toMatchObject({ status: 409 })
  await moveClock(api.owner, '401 days')
  await removeOld(api.db, running)
  for (const id of [open, fires, asking, held]) expect(await isThere(id)).toBe(true)
  const shown = (await api.get('/retention')).body as { items?: { kept: object }[] }
  expect(shown.items?.[0]).toMatchObject({ kind: 'incidents', due: 0, kept: { held: 1, 'waited for': 2 } })
  expect(
    await api.post(`/incidents/${held}/release`, { body: { reason: 'Over.' }, as: api.tokens.operator }),
  ).toMatchObject({ status: 403 })
  expect(await api.post(`/incidents/${held}/release`, { body: { reason: 'The case is over.' } })).toMatchObject({
    status: 200,
  })
  await removeOld(api.db, running)
  expect(await isThere(held)).toBe(false)
})

test('a precedent of an open incident stays while this incident is open', async () => {
  const before = await anEndedOne('replication_lag')
  await moveClock(api.owner, '390 days')
  const live = await openedIncident(api.db, {
    name: 'replication_lag',
    labels: { alertname: 'replication_lag', other: 'x' },
  })
  const type = (await sql<{ type: string }>`select type from incident where id = ${live}`.execute(api.db)).rows[0]?.type
  expect(type).toBe('replication_lag')
  await moveClock(api.owner, '401 days')
  await removeOld(api.db, running)
  expect(await isThere(before)).toBe(true)
  await sql`update incident set status = 'cancelled', closed_at = nightshift_now() where id = ${live}`.execute(
    api.owner,
  )
  await removeOld(api.db, running)
  expect(await isThere(before)).toBe(false)
})

test('the services can remove nothing by themselves, and the owner nothing without a tombstone', async () => {
  const id = await anEndedOne('kept_one')
  for (const statement of [
    sql`delete from incident_event where incident_id = ${id}`,
    sql`delete from incident where id = ${id}`,
    sql`delete from alert where incident_id = ${id}`,
    sql`delete from delivery`,
    sql`delete from result_body`,
    sql`delete from row_change`,
    sql`insert into removed_incident (incident_id, removal_id, rows, head_hash, closed_at) values (${id}, 1, 1, '', now())`,
    sql`insert into removal (rule, before) values ('mine', now())`,
    sql`select remove_what_belongs(array[${id}])`,
    sql`delete from incident_hold`,
  ])
    await expect(statement.execute(api.db)).rejects.toMatchObject({ code: '42501' })
  for (const statement of [
    sql`delete from incident_event where incident_id = ${id}`,
    sql`delete from row_change where row_key = ${id}`,
    sql`delete from removed_incident`,
  ])
    await expect(statement.execute(api.owner)).rejects.toMatchObject({ code: '42501' })
  expect(await isThere(id)).toBe(true)
})

/** What the owner does with every guard off, seen by `verify`, and taken back. */
async function foundAfter(...statements: ReturnType<typeof sql>[]): Promise<string[]> {
  let found: string[] = []
  await api.owner
    .transaction()
    .execute(async (trx) => {
      await sql`set local session_replication_role = replica`.execute(trx)
      for (const statement of statements) await statement.execute(trx)
      found = await differences(trx)
      throw new Error('taken back')
    })
    .catch((error) => expect(String(error)).toContain('taken back'))
  return found
}

test('a false tombstone, a missing one, and a removal without one are differences', async () => {
  const [gone, stays] = [await anEndedOne('gone_one'), await openedIncident(api.db)]
  await moveClock(api.owner, '401 days')
  await removeOld(api.db, running)
  expect(await isThere(gone)).toBe(false)
  // Nothing of what other tests altered by hand may hide what these alter.
  const before = new Set(await differences(api.db))
  const newly = async (...statements: ReturnType<typeof sql>[]) =>
    (await foundAfter(...statements)).filter((each) => !before.has(each))
  const altered = 'its tombstones differ from the digest in the audit'
  for (const statement of [
    sql`update removed_incident set head_hash = 'x' where incident_id = ${gone}`,
    sql`update removed_incident set rows = rows + 1 where incident_id = ${gone}`,
    sql`update removed_incident set closed_at = closed_at - interval '1 day' where incident_id = ${gone}`,
    sql`update removal set rule = 'retention.incidents = 31 days'`,
    sql`delete from removed_incident where incident_id = ${gone}`,
  ])
    expect(await newly(statement)).toContainEqual(expect.stringContaining(altered))
  expect(await newly(sql`delete from removed_incident`, sql`delete from removal`)).toContainEqual(
    expect.stringContaining('the audit has a row of this removal, and its tombstones are missing'),
  )
  const removed = [
    sql`delete from delivery where incident_id = ${stays}`,
    sql`delete from alert where incident_id = ${stays}`,
    sql`delete from incident_event where incident_id = ${stays}`,
    sql`delete from incident where id = ${stays}`,
  ]
  await sql`update incident set reminded_at = nightshift_now() where id = ${stays}`.execute(api.db)
  expect(await newly(...removed)).toContainEqual(
    `${stays}: the incident is missing, and no record shows that retention removed it`,
  )
  const madeUp = sql`insert into removed_incident (incident_id, removal_id, rows, head_hash, closed_at)
    select ${stays}, max(id), 1, 'x', now() from removal`
  expect(await newly(...removed, madeUp)).toContainEqual(expect.stringContaining(altered))
  expect(await newly(madeUp)).toContainEqual(expect.stringContaining('it has a tombstone of removal'))
})

test('a body is removed a day after the last incident that named it, and never while a row names it', async () => {
  const digestsOf = async () =>
    (await api.db.selectFrom('resultBody').select('bytes').execute()).map(({ bytes }) => bytes.toString())
  await anEndedOne('alone', 'said once')
  await anEndedOne('first', 'said by two')
  await moveClock(api.owner, '390 days')
  await anEndedOne('second', 'said by two')
  await moveClock(api.owner, '401 days')
  await removeOld(api.db, running)
  expect(await digestsOf()).toEqual(expect.arrayContaining(['said once', 'said by two']))
  await moveClock(api.owner, '403 days')
  await storeBody(api.db, 'said again')
  await removeOld(api.db, running)
  expect(await digestsOf()).not.toContain('said once')
  expect(await digestsOf()).toContain('said by two')
})

test.each([
  [undefined, null],
  ['keep', null],
  ['90', 90],
  ['31', 31],
  ['30', null],
  ['9999', null],
  ['-1', null],
  ['1e3', null],
])('with %s set, the database and the preview name the same days: %s', async (value, days) => {
  await sql`delete from platform_config`.execute(api.owner)
  if (value !== undefined)
    await sql`insert into platform_config (key, value) values ('retention.incidents', ${value})`.execute(api.owner)
  const { rows } = await sql<{
    days: number | null
  }>`select retention_days('retention.incidents', null) as days`.execute(api.db)
  expect(rows[0]?.days).toBe(days)
  expect(daysOf('incidents', await storedSettings(api.db))).toBe(days)
})
