import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { append, StaleRunError } from '../../../db/log/append.ts'
import { bodyText, storeBody } from '../../../db/log/bodies.ts'
import { verifyChain } from '../../../db/log/chain.ts'
import { eventsOf } from '../../../db/log/events.ts'
import { streamAfter, streamEnd } from '../../../db/log/stream.ts'
import { systemScope } from '../../../db/scope.ts'
import type { NewEvent } from '../../../domain/event.ts'
import { claimedIncident, useDatabase } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'

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

test('fifty parallel writers leave numbers without a gap and a valid chain', async () => {
  const id = await claimedIncident(database.db)
  await Promise.all(Array.from({ length: 50 }, (_, index) => write(id, 1, comment(`note ${index}`))))
  const events = await eventsOf(database.db, id)
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1))
  expect(await verifyChain(database.db, id)).toMatchObject({ ok: true, events: 51, problem: null })
})

test('a step that is written twice is one row, and the second writer gets the first row', async () => {
  const id = await claimedIncident(database.db)
  const twice = await Promise.all([write(id, 1, comment('one', `${id}:k`)), write(id, 1, comment('two', `${id}:k`))])
  expect(twice.map((answer) => answer.inserted).sort()).toEqual([false, true])
  expect(twice[0]?.event.hash).toBe(twice[1]?.event.hash)
})

test('a superseded run cannot write', async () => {
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

test('a row that was changed despite the trigger is found, and so is a removed row', async () => {
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
    problem: { what: expect.stringContaining('earlier hash') },
  })
  await sql`alter table incident_event enable trigger all`.execute(database.owner)
})

test.each([
  ['U+0000', 'a\u0000b'],
  ['a lone surrogate', 'a\ud800b'],
  ['numbers at the edge', { big: 1e21, small: 1e-7, minus: -0, float: 0.1 }],
  ['a key that is a trap', JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}')],
  ['deep nesting', JSON.parse(`${'['.repeat(200)}1${']'.repeat(200)}`)],
])('%s can be stored in a row and its hash stays valid', async (_name, value) => {
  const id = await claimedIncident(database.db)
  await write(id, 1, { ...comment('x'), metadata: { text: 'x', confidence: null, action: null, value } as never })
  expect(await verifyChain(database.db, id)).toMatchObject({ ok: true })
})

test('a body is stored once under its digest and returned whole', async () => {
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
      // Where another test's transaction was open as this began, the incident's own first row comes
      // too.
      if (row.kind === 'commented') seen.push(row.hash)
      position = row.position
    }
    return rows.length
  }
  const writing = Promise.all(Array.from({ length: 50 }, (_, index) => write(id, 1, comment(`n${index}`))))
  // A row shows itself once nothing that began before it is still writing anywhere in this
  // PostgreSQL, other tests included.
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
