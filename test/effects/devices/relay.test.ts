import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { packFrame } from '../../../mesh/frames.ts'
import { type Door, knownToCallOut, openDoor } from '../../support/calls-out.ts'
import { eventually } from '../../support/directory.ts'
import { enrolledKey, type LinkClient, type LinkKey, welcomed } from '../../support/link-client.ts'
import { useMeshApi } from '../../support/mesh-api.ts'

const api = useMeshApi()
let asking: Door
let holding: Door
let own: LinkKey

beforeAll(async () => {
  asking = await openDoor(api, 'api-1')
  holding = await openDoor(api, 'api-2')
  own = await enrolledKey(api, asking.url, 'node-osl-1', await knownToCallOut(api, 'node-osl-1'))
})

const ask = (path: string, timeoutMs = 20_000) =>
  asking.connections.way('node-osl-1').exchange({ method: 'GET', path, timeoutMs })
const asked = (client: LinkClient) => eventually('the question', () => client.asks.shift())
const rows = async () => {
  const { rows: found } = await sql<{ n: number }>`
    select (select count(*) from mesh_relay) + (select count(*) from mesh_relay_piece) as n`.execute(api.db)
  return Number(found[0]?.n)
}
const gone = async (client: LinkClient, door: Door) => {
  client.socket.terminate()
  await eventually('the end of it', () => door.connections.held().length === 0)
}
const head = Buffer.from([0, 200])

test('a process asks a device of another process, and gets the whole answer, however large', async () => {
  const client = await welcomed(holding.url, own)
  const small = ask('/small')
  const first = await asked(client)
  expect(first.head).toMatchObject({ method: 'GET', path: '/small' })
  client.answer(first.exchange, 202, { small: true })
  const answer = await small
  expect([answer.status, Buffer.from(answer.body).toString()]).toEqual([202, '{"small":true}'])

  const large = ask('/large', 60_000)
  const second = await asked(client)
  const bytes = Buffer.alloc(10_000_000, 'ab')
  client.send(packFrame('head', second.exchange, head))
  for (let at = 0; at < bytes.length; at += 65_536)
    client.send(packFrame('data', second.exchange, bytes.subarray(at, at + 65_536)))
  client.send(packFrame('end', second.exchange))
  expect(Buffer.compare(Buffer.from((await large).body), bytes)).toBe(0)
  expect(await rows()).toBe(0)
  await gone(client, holding)
})

test('lines arrive as they are written, and a caller who leaves ends the exchange on the device', async () => {
  const client = await welcomed(holding.url, own)
  const stop = new AbortController()
  const way = asking.connections.way('node-osl-1')
  const lines = way.lines({ method: 'GET', path: '/stream', timeoutMs: 60_000, signal: stop.signal })
  const next = lines.next()
  const { exchange } = await asked(client)
  client.send(packFrame('head', exchange, head))
  client.send(packFrame('data', exchange, Buffer.from('one\ntw')))
  expect((await next).value).toBe('one')
  client.send(packFrame('data', exchange, Buffer.from('o\n')))
  expect((await lines.next()).value).toBe('two')
  const dropped = eventually('the word to stop', () => client.dropped.includes(exchange))
  stop.abort()
  await expect(lines.next()).rejects.toMatchObject({ code: 'aborted' })
  await dropped
  await gone(client, holding)
})

test('a connection that breaks is reported to the asking process, and the outcome is unknown', async () => {
  const client = await welcomed(holding.url, own)
  const answer = ask('/half')
  const { exchange } = await asked(client)
  client.send(packFrame('head', exchange, head))
  await gone(client, holding)
  await expect(answer).rejects.toMatchObject({ code: 'protocol', retryable: true })
  await expect(ask('/later')).rejects.toMatchObject({
    code: 'connect',
    message: expect.stringContaining('not connected since'),
  })
})

test('a device that moves to another process during a request does not answer it', async () => {
  const client = await welcomed(holding.url, own)
  const answer = ask('/moved')
  await asked(client)
  const here = await welcomed(asking.url, own)
  await expect(answer).rejects.toMatchObject({ code: 'protocol' })
  await client.end()
  await gone(here, asking)
})

test('a caller that waits for a reconnecting device is told when it is back, at any process', async () => {
  const first = await welcomed(asking.url, own)
  await gone(first, asking)
  const ready = asking.connections.way('node-osl-1').ready()
  const back = await welcomed(holding.url, own)
  await ready
  const answer = ask('/back')
  const { exchange } = await asked(back)
  back.answer(exchange, 200, {})
  expect((await answer).status).toBe(200)
  await gone(back, holding)
})

test('waiting rows are sealed, and changed ones are refused', async () => {
  const client = await welcomed(holding.url, own)
  await sql`create table seen_relay (sealed bytea)`.execute(api.owner)
  await sql`grant insert on seen_relay to nightshift_app`.execute(api.owner)
  await sql`
    create function keep_relay() returns trigger language plpgsql as $$
    begin
      insert into seen_relay values (new.sealed);
      if tg_table_name = 'mesh_relay_piece' then new.sealed := overlay(new.sealed placing '\\x00'::bytea from 20); end if;
      return new;
    end $$`.execute(api.owner)
  for (const table of ['mesh_relay', 'mesh_relay_piece'])
    await sql`create trigger keep before insert on ${sql.table(table)} for each row execute function keep_relay()`.execute(
      api.owner,
    )
  const answer = ask('/secret-path')
  const { exchange } = await asked(client)
  client.answer(exchange, 200, { secret: 'canary' })
  await expect(answer).rejects.toMatchObject({ code: 'protocol', message: expect.stringContaining('altered') })
  for (const table of ['mesh_relay', 'mesh_relay_piece'])
    await sql`drop trigger keep on ${sql.table(table)}`.execute(api.owner)
  const { rows: kept } = await sql<{ sealed: Buffer }>`select sealed from seen_relay`.execute(api.owner)
  expect(kept.length).toBeGreaterThan(1)
  expect(kept.filter(({ sealed }) => /canary|secret/.test(sealed.toString('latin1')))).toEqual([])
  await gone(client, holding)
})

test('connections of a dead process end at the time when it was last seen', async () => {
  const client = await welcomed(holding.url, own)
  await sql`update mesh_process set seen_at = nightshift_now() - interval '30 seconds' where id = ${holding.connections.processId}`.execute(
    api.db,
  )
  const { body } = await api.get('/devices/node-osl-1')
  expect(body.connection).toMatchObject({ isConnected: false, process: 'api-2' })
  // It was not dead: it says so within seconds, and keeps what it holds.
  await eventually('it to be back', async () => {
    const { body: now } = await api.get('/devices/node-osl-1')
    return (now.connection as unknown as { isConnected: boolean }).isConnected
  })
  expect(client.closed).toBeNull()
  await gone(client, holding)
})
