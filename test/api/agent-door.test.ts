import { connect } from 'node:net'
import { beforeAll, expect, test } from '@jest/globals'
import { closeCodes } from '../../domain/mesh-connection.ts'
import { packFrame } from '../../mesh/frames.ts'
import { askThrough, type Door, knownToCallOut, openDoor } from '../support/calls-out.ts'
import { eventually } from '../support/directory.ts'
import { enrolledKey, helloOf, type LinkClient, type LinkKey, linkClient, welcomed } from '../support/link-client.ts'
import { newKey, useMeshApi } from '../support/mesh-api.ts'

const api = useMeshApi()
let door: Door
const keys = new Map<string, LinkKey>()

const key = (id: string) => keys.get(id) as LinkKey
async function known(id: string): Promise<LinkKey> {
  const own = await enrolledKey(api, door.url, id, await knownToCallOut(api, id))
  keys.set(id, own)
  return own
}

beforeAll(async () => {
  door = await openDoor(api)
  askThrough(api, door)
  for (const id of ['node-osl-1', 'node-osl-2']) await known(id)
})

const ask = (id: string, timeoutMs = 20_000) =>
  door.connections.way(id).exchange({ method: 'GET', path: '/operations/x', timeoutMs })
const auditOf = async (what: string) =>
  await api.db.selectFrom('audit').select(['who', 'subject', 'detail']).where('what', '=', what).execute()

test('an agent that cannot sign as the device is refused whatever part is missing, and the audit log has its claim', async () => {
  const own = key('node-osl-1')
  const wrong: [string, LinkKey, Record<string, unknown>][] = [
    ['an unknown device', { ...own, device: 'nobody' }, {}],
    ['another key', { ...own, key: newKey('agent').key }, {}],
    ['the key of another device', { ...key('node-osl-2'), device: 'node-osl-1' }, {}],
    ['another control plane', { ...own, audience: 'a'.repeat(64) }, {}],
    ['a nonce of its own', own, { nonce: 'A'.repeat(43) }],
    ['another purpose', own, { purpose: 'something else' }],
  ]
  for (const [what, by, changes] of wrong) {
    const client = await linkClient(door.url)
    client.say(helloOf(by, client.heard[0], changes))
    expect([what, (await client.end()).code]).toEqual([what, closeCodes.refused])
  }
  expect(door.connections.held()).toEqual([])
  expect((await auditOf('security.connection_refused')).map(({ detail }) => detail)).toContain(
    'Connected as nobody without the key of that device, or as a device that is unknown or revoked',
  )
})

test('a hello for one connection is refused on another', async () => {
  const first = await linkClient(door.url)
  const hello = helloOf(key('node-osl-1'), first.heard[0])
  const replayed = await linkClient(door.url)
  replayed.say(hello)
  expect((await replayed.end()).code).toBe(closeCodes.refused)
  first.say(hello)
  await eventually('the welcome', () => first.heard.some(({ kind }) => kind === 'welcome'))
  first.say(hello)
  // Once it is welcome, words have no place: the connection ends.
  expect((await first.end()).code).not.toBe(1000)
})

test('a second connection with the same key replaces the first, and the audit log has a row about it', async () => {
  const first = await welcomed(door.url, key('node-osl-1'))
  const second = await welcomed(door.url, key('node-osl-1'))
  expect((await first.end()).code).toBe(closeCodes.replaced)
  const [row] = await auditOf('device.connection_replaced')
  expect(row).toMatchObject({ who: 'node-osl-1', subject: 'node-osl-1' })
  expect(row?.detail).toContain('another run of the agent, with the same key')
  expect(second.closed).toBeNull()
  second.socket.close()
  await eventually('the end of it', () => door.connections.held().length === 0)
})

test('a revoked device is disconnected at once and cannot connect again', async () => {
  const own = await known('node-osl-3')
  const client = await welcomed(door.url, own)
  expect((await api.post('/devices/node-osl-3/revoke', { body: { reason: 'stolen' } })).status).toBe(200)
  expect((await client.end()).code).toBe(closeCodes.refused)
  const again = await linkClient(door.url)
  again.say(helloOf(own, again.heard[0]))
  expect((await again.end()).code).toBe(closeCodes.refused)
})

test('a device that enrols again has the name alone, and the connection with the former key ends', async () => {
  const own = await known('node-osl-4')
  const client = await welcomed(door.url, own)
  const { body } = await api.post('/devices/node-osl-4/enrolment')
  await enrolledKey(api, door.url, 'node-osl-4', String(body.token))
  expect((await client.end()).code).toBe(closeCodes.refused)
})

test('a changed device gets its new manifest over the connection', async () => {
  const client = await welcomed(door.url, key('node-osl-2'))
  const terms = { capabilities: [], roots: [{ path: '/srv', writable: false }] }
  await api.put('/devices/node-osl-2', { body: { url: null, mode: 'user', terms } })
  const word = await eventually('the manifest', () => client.heard.find(({ kind }) => kind === 'manifest'))
  expect(word.manifest).toMatchObject({ device: 'node-osl-2', roots: [{ path: '/srv', writable: false }] })
  client.socket.close()
  await eventually('the end of it', () => !door.connections.held().includes('node-osl-2'))
})

test('another version of the protocol is refused in one sentence that names both versions', async () => {
  const raw = await upgraded(door.url, 'nightshift-mesh.0')
  expect(raw).toMatch(/^HTTP\/1\.1 426 /)
  expect(raw).toContain(
    'This control plane uses the protocol nightshift-mesh.1, and the agent offers nightshift-mesh.0. Update the older of the two.',
  )
})

/** What a server says to an upgrade, as it stands. */
function upgraded(url: string, protocol: string): Promise<string> {
  const { port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('close', () => resolve(text))
    const lines = ['GET /mesh/connection HTTP/1.1', 'Host: x', 'Upgrade: websocket', 'Connection: Upgrade']
    const more = [
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
      `Sec-WebSocket-Protocol: ${protocol}`,
    ]
    socket.write(`${[...lines, ...more].join('\r\n')}\r\n\r\n`)
  })
}

test('silent connections take no place from an agent, however many there are', async () => {
  const silent = await Promise.all(Array.from({ length: 300 }, () => linkClient(door.url)))
  const client = await welcomed(door.url, key('node-osl-1'))
  await eventually('the oldest to be sent away', () => silent.filter(({ closed }) => closed).length >= 300 - 256)
  for (const { socket } of silent) socket.terminate()
  client.socket.close()
  await eventually('the end of it', () => door.connections.held().length === 0)
})

test('an error of one device ends only its own connection', async () => {
  const good = await welcomed(door.url, key('node-osl-1'))
  const floods: [string, (client: LinkClient) => void][] = [
    ['a frame of a gigabyte', (client) => rawFrame(client, 1_000_000_000)],
    ['a word where none has a place', (client) => client.say({ kind: 'hello' })],
    ['bytes that are no frame', (client) => client.send(Buffer.from([200, 0, 0, 0, 1]))],
    ['answers that nobody asked for', (client) => repeat(client, 400, packFrame('data', 77, Buffer.alloc(60_000)))],
    ['frames without an end', (client) => repeat(client, 20_000, packFrame('data', 78, Buffer.alloc(1)))],
    ['pings without an end', (client) => void Array.from({ length: 20_000 }, () => client.socket.ping())],
  ]
  for (const [what, flood] of floods) {
    const bad = await welcomed(door.url, key('node-osl-2'))
    flood(bad)
    await eventually(`the end of who sends ${what}`, () => bad.closed)
    const answer = ask('node-osl-1')
    const asked = await eventually('the question', () => good.asks.shift())
    good.answer(asked.exchange, 200, { still: 'here' })
    expect(Buffer.from((await answer).body).toString()).toBe('{"still":"here"}')
  }
  good.socket.close()
  await eventually('the end of it', () => door.connections.held().length === 0)
}, 120_000)

/** The head of a frame that promises so many bytes. */
function rawFrame(client: LinkClient, bytes: number): void {
  const head = Buffer.alloc(14)
  head.writeUInt8(0x82, 0)
  head.writeUInt8(0x80 | 127, 1)
  head.writeBigUInt64BE(BigInt(bytes), 2)
  ;(client.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(head)
}

function repeat(client: LinkClient, times: number, frame: Buffer): void {
  for (let n = 0; n < times; n += 1) client.send(frame)
}

test('a device can answer only its own exchanges', async () => {
  const [one, other] = [await welcomed(door.url, key('node-osl-1')), await welcomed(door.url, key('node-osl-2'))]
  const answer = ask('node-osl-1')
  const asked = await eventually('the question', () => one.asks.shift())
  for (let exchange = 1; exchange <= asked.exchange + 5; exchange += 1) other.answer(exchange, 200, { forged: true })
  // The other one was heard: what it is asked after that comes back.
  const later = ask('node-osl-2')
  const second = await eventually('its question', () => other.asks.shift())
  other.answer(second.exchange, 200, { own: true })
  await later
  one.answer(asked.exchange, 200, { true: 'one' })
  expect(Buffer.from((await answer).body).toString()).toBe('{"true":"one"}')
  one.socket.close()
  other.socket.close()
  await eventually('the end of both', () => door.connections.held().length === 0)
})

test('an answer without an end is cut off at its limit, and the device can be asked again', async () => {
  const client = await welcomed(door.url, key('node-osl-1'))
  const endless = ask('node-osl-1', 60_000)
  const asked = await eventually('the question', () => client.asks.shift())
  client.send(packFrame('head', asked.exchange, Buffer.from([0, 200])))
  for (let n = 0; n < 260; n += 1) client.send(packFrame('data', asked.exchange, Buffer.alloc(65_536)))
  await expect(endless).rejects.toMatchObject({ code: 'too_large' })
  const next = ask('node-osl-1')
  const second = await eventually('the next question', () => client.asks.shift())
  client.answer(second.exchange, 200, {})
  expect((await next).status).toBe(200)
  client.socket.close()
  await eventually('the end of it', () => door.connections.held().length === 0)
})

test('a device that never answers or never reads costs its caller only time', async () => {
  const client = await welcomed(door.url, key('node-osl-1'))
  await expect(ask('node-osl-1', 200)).rejects.toMatchObject({
    code: 'timeout',
    message: expect.stringContaining('took longer'),
  })
  client.socket.pause()
  const body = 'x'.repeat(1_000_000)
  const way = door.connections.way('node-osl-1')
  const all = await Promise.allSettled(
    Array.from({ length: 40 }, () => way.exchange({ method: 'POST', path: '/capability', body, timeoutMs: 5_000 })),
  )
  expect(all.every(({ status }) => status === 'rejected')).toBe(true)
  await eventually('the end of it', () => door.connections.held().length === 0)
  client.socket.terminate()
})

test('an API process that stops sends its agents to another process and accepts no new agent', async () => {
  const leaving = await openDoor(api, 'api-2')
  const client = await welcomed(leaving.url, key('node-osl-1'))
  const stopping = leaving.stop()
  await eventually('the word', () => client.heard.some(({ kind }) => kind === 'move'))
  expect((await client.end()).code).toBe(closeCodes.move)
  await stopping
  const { body } = await api.get('/devices/node-osl-1')
  expect(body.connection).toMatchObject({ isConnected: false, process: 'api-2' })
  expect((await api.post('/devices/node-osl-1/health')).body.healthProblem).toMatch(
    /node-osl-1 calls out, and is not connected since 20/,
  )
})
