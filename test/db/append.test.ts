import { beforeEach, describe, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { ensureOperator } from '../../db/access/tokens.ts'
import { markIncidentExpected } from '../../db/alerts/expectations.ts'
import { ingestAlert } from '../../db/alerts/ingest-body.ts'
import { type Closing, closeIncident } from '../../db/incidents/close-incident.ts'
import { claimIncident, incidentById } from '../../db/incidents/incidents.ts'
import { leaseLooks, recordLook } from '../../db/incidents/looks.ts'
import { handOver, takeIncident } from '../../db/incidents/owners.ts'
import { append, StaleRunError } from '../../db/log/append.ts'
import { bodyText, storeBody } from '../../db/log/bodies.ts'
import { verifyChain } from '../../db/log/chain.ts'
import { eventsOf } from '../../db/log/events.ts'
import { streamAfter, streamEnd } from '../../db/log/stream.ts'
import { systemScope } from '../../db/scope.ts'
import { agentActor, type NewEvent } from '../../domain/event.ts'
import { anAlert, claimedIncident, moveClock, openedIncident, useDatabase } from '../support/database.ts'
import { eventually } from '../support/directory.ts'

describe('append', () => {
  const database = useDatabase()

  const comment = (text: string, stepKey: string | null = null): NewEvent<'commented'> => ({
    kind: 'commented',
    actor: 'user:anna',
    detail: text,
    stepKey,
    metadata: { text, confidence: null, action: null },
  })

  const write = (incidentId: string, attempt: number | null, event: NewEvent) =>
    database.db.transaction().execute((trx) => append(trx, incidentId, attempt, event))

  test('fifty writers at once leave numbers without a gap and a chain that holds', async () => {
    const id = await claimedIncident(database.db)
    await Promise.all(Array.from({ length: 50 }, (_, index) => write(id, 1, comment(`note ${index}`))))
    const events = await eventsOf(database.db, id)
    expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1))
    expect(await verifyChain(database.db, id)).toMatchObject({ ok: true, events: 51, problem: null })
  })

  test('a step written twice is one row, and the second writer gets the first one', async () => {
    const id = await claimedIncident(database.db)
    const twice = await Promise.all([write(id, 1, comment('one', `${id}:k`)), write(id, 1, comment('two', `${id}:k`))])
    expect(twice.map((answer) => answer.inserted).sort()).toEqual([false, true])
    expect(twice[0]?.event.hash).toBe(twice[1]?.event.hash)
  })

  test('a run that was superseded can write nothing', async () => {
    const id = await claimedIncident(database.db)
    await expect(write(id, 0, comment('late'))).rejects.toBeInstanceOf(StaleRunError)
    await expect(write(id, 2, comment('early'))).rejects.toBeInstanceOf(StaleRunError)
  })

  test.each([
    ['changed', sql`update incident_event set detail = 'x'`],
    ['deleted', sql`delete from incident_event`],
    ['truncated', sql`truncate incident_event`],
  ])('the log cannot be %s, by the services or by its owner', async (_how, statement) => {
    await expect(statement.execute(database.db)).rejects.toThrow(/permission denied/)
    await expect(statement.execute(database.owner)).rejects.toThrow(/append-only/)
  })

  test('a row that was changed behind the trigger is found, and so is one that was taken away', async () => {
    const id = await claimedIncident(database.db)
    for (const text of ['one', 'two', 'three']) await write(id, 1, comment(text))
    const head = (await eventsOf(database.db, id)).at(-1)?.hash
    await sql`alter table incident_event disable trigger all`.execute(database.owner)
    await sql`update incident_event set detail = 'TWO' where incident_id = ${id} and seq = 3`.execute(database.owner)
    expect(await verifyChain(database.db, id)).toMatchObject({
      ok: false,
      problem: { seq: 3, what: expect.stringContaining('content') },
    })
    await sql`update incident_event set detail = 'two' where incident_id = ${id} and seq = 3`.execute(database.owner)
    expect(await verifyChain(database.db, id)).toMatchObject({ ok: true })

    // The whole tail gone and the head moved back: only the hash that was handed out tells.
    await sql`delete from incident_event where incident_id = ${id} and seq = 4`.execute(database.owner)
    expect(await verifyChain(database.db, id)).toMatchObject({ ok: false, problem: { seq: 4 } })
    await sql`update incident set next_seq = 4, head_hash = (select hash from incident_event where incident_id = ${id} and seq = 3)
    where id = ${id}`.execute(database.owner)
    expect(await verifyChain(database.db, id)).toMatchObject({ ok: true })
    expect(await verifyChain(database.db, id, head)).toMatchObject({
      ok: false,
      problem: { what: expect.stringContaining('handed out') },
    })
    await sql`alter table incident_event enable trigger all`.execute(database.owner)
  })

  test.each([
    ['U+0000', 'a\u0000b'],
    ['a lone surrogate', 'a\ud800b'],
    ['numbers at the edge', { big: 1e21, small: 1e-7, minus: -0, float: 0.1 }],
    ['a key that is a trap', JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}')],
    ['deep nesting', JSON.parse(`${'['.repeat(200)}1${']'.repeat(200)}`)],
  ])('%s goes into a row and its hash still holds', async (_name, value) => {
    const id = await claimedIncident(database.db)
    await write(id, 1, { ...comment('x'), metadata: { text: 'x', confidence: null, action: null, value } as never })
    expect(await verifyChain(database.db, id)).toMatchObject({ ok: true })
  })

  test('a body is stored once under its digest and comes back whole', async () => {
    const text = `${'x'.repeat(100_000)}ÿ`
    const first = await storeBody(database.db, text)
    const second = await storeBody(database.db, text)
    expect(first).toEqual(second)
    expect(first.head.length + first.tail.length).toBeLessThan(2_000)
    expect(await bodyText(database.db, first.digest)).toBe(text)
  })

  test('a listener that reads the stream in small steps beside fifty writers misses no row and sees none twice', async () => {
    const id = await claimedIncident(database.db)
    let position = await streamEnd(systemScope(database.db))
    const seen: string[] = []
    const read = async () => {
      const rows = await streamAfter(systemScope(database.db), position, { incidentId: id, limit: 7 })
      for (const row of rows) {
        // Where another test's transaction was open as this began, the incident's own first row comes too.
        if (row.kind === 'commented') seen.push(row.hash)
        position = row.position
      }
      return rows.length
    }
    const writing = Promise.all(Array.from({ length: 50 }, (_, index) => write(id, 1, comment(`n${index}`))))
    // A row shows itself once nothing that began before it is still writing anywhere in this PostgreSQL, other tests included.
    await eventually('fifty rows', async () => {
      while ((await read()) > 0);
      return seen.length >= 50
    })
    await writing
    await read()
    const rows = (await eventsOf(database.db, id)).filter((event) => event.kind === 'commented')
    expect(new Set(seen).size).toBe(seen.length)
    expect(seen.sort()).toEqual(rows.map((row) => row.hash).sort())
  })
})

describe('ownership', () => {
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
    ...{ status: 'resolved', outcome: 'repaired', resolution: 'restarted by hand', claims: [], confidence: null },
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
  ] as const)('an incident that is %s is with nobody', async (_, closing) => {
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

  test('a run that hands over by itself while a person asks for it hands over to her', async () => {
    await setting('webhook.escalated.url', 'http://127.0.0.1:9/escalated')
    const id = await atWork()
    expect(await take(id)).toMatchObject({ taken: false })
    await close(id, escalated, agentActor)
    expect(await standing(id)).toMatchObject({ status: 'escalated', owner: { name: 'anna' } })
    expect((await eventsOf(database.db, id)).at(-1)).toMatchObject({ kind: 'noted', metadata: { code: 'taken' } })
    // She asked for it: nobody else is woken.
    expect(await told(id)).toEqual([])
  })

  test('an incident that was escalated before a take is carried out is hers all the same', async () => {
    const id = await openedIncident(database.db)
    await close(id, escalated, agentActor)
    const by = await anna()
    await database.db.transaction().execute((trx) => handOver(trx, id, null, by))
    expect(await standing(id)).toMatchObject({ status: 'escalated', owner: { name: 'anna' } })
  })

  test('what is not investigated unasked is not investigated for coming back', async () => {
    await setting('agent.investigate', 'none')
    const startsAt = await pass(0)
    const alert = anAlert({ startsAt })
    const { incidentId } = await ingestAlert(database.db, alert)
    const id = incidentId ?? ''
    await close(id, byHand, 'user:anna')
    await ingestAlert(database.db, { ...alert, status: 'resolved', endsAt: await pass(60) })
    await ingestAlert(database.db, { ...alert, startsAt: await pass(60) })
    expect(await standing(id)).toMatchObject({
      ...{ status: 'open', reopened: 1 },
      keptReason: 'agent.investigate is none for incidents of this type',
    })
  })

  /** Marked as expected; then its alert ends and fires again within the time of the mark. */
  async function expectedAgain(): Promise<string> {
    await setting('webhook.escalated.url', 'http://127.0.0.1:9/escalated')
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

  test('what comes back as it is expected notifies nobody', async () => {
    const id = await expectedAgain()
    await look(null)
    expect(await standing(id)).toMatchObject({ status: 'resolved', outcome: 'expected' })
    expect(await told(id)).toEqual([])
  })

  test('what comes back and looks different is notified once, with the difference', async () => {
    const id = await expectedAgain()
    await look('it was nominal and is degraded')
    expect(await standing(id)).toMatchObject({ status: 'open' })
    expect(await told(id)).toMatchObject([
      { trigger: 'reopened', reason: 'Marked as expected, but it looks different: it was nominal and is degraded' },
    ])
  })

  test('nobody is woken because an alert ended', async () => {
    await setting('webhook.escalated.url', 'http://127.0.0.1:9/escalated')
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
})
