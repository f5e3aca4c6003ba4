import { createHash, generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { WebSocket } from 'ws'
import { connectionPath, connectionProtocol, connectionPurpose } from '../../domain/mesh-connection.ts'
import { packFrame, readAsk, readFrame } from '../../mesh/frames.ts'
import { publicHalf, signed, writePublicKey } from '../../mesh/sign.ts'
import { eventually } from './directory.ts'
import type { MeshApi } from './mesh-api.ts'

/** The far end of a connection as an attacker or a scripted agent drives it, frame by frame. */
export type LinkClient = {
  socket: WebSocket
  /** Words of the control plane, oldest first. */
  heard: Record<string, unknown>[]
  asks: { exchange: number; head: Record<string, unknown>; body: Buffer }[]
  /** Exchanges that the control plane wants no answer to any more. */
  dropped: number[]
  closed: { code: number; reason: string } | null
  say(word: object): void
  send(bytes: Uint8Array): void
  /** A whole answer of JSON. */
  answer(exchange: number, status: number, body: unknown): void
  end(): Promise<{ code: number; reason: string }>
}

/**
 * `well`: the device under whose name it answers every question about its health. All others are
 * left to the test.
 */
export async function linkClient(url: string, well: string | null = null): Promise<LinkClient> {
  const address = `${url.replace('http', 'ws')}${connectionPath}`
  const socket = new WebSocket(address, connectionProtocol, { perMessageDeflate: false })
  const client: LinkClient = {
    socket,
    heard: [],
    asks: [],
    dropped: [],
    closed: null,
    say: (word) => socket.send(JSON.stringify(word)),
    send: (bytes) => socket.send(bytes),
    answer(exchange, status, body) {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(status, 0)
      socket.send(packFrame('head', exchange, head))
      socket.send(packFrame('data', exchange, Buffer.from(JSON.stringify(body))))
      socket.send(packFrame('end', exchange))
    },
    end: () => eventually('the connection to end', () => client.closed),
  }
  socket.on('message', (bytes: Buffer, isBinary: boolean) => {
    if (!isBinary) return void client.heard.push(JSON.parse(bytes.toString('utf8')))
    const frame = readFrame(bytes)
    const asked = frame?.kind === 'ask' ? readAsk(frame.piece) : null
    if (frame?.kind === 'drop') client.dropped.push(frame.exchange)
    if (!frame || !asked) return
    if (well !== null && asked.head.path === '/health') client.answer(frame.exchange, 200, healthOf(well))
    else client.asks.push({ exchange: frame.exchange, ...asked })
  })
  socket.on('error', () => {})
  socket.on('close', (code, reason) => {
    client.closed = { code, reason: reason.toString('utf8') }
  })
  await eventually('the challenge', () => client.heard.length > 0 || client.closed)
  return client
}

const healthOf = (device: string) => ({
  device,
  status: 'ready',
  reason: null,
  version: '9.9.9',
  manifest_id: null,
  manifest_expires_at: null,
  mode: 'user',
  unavailable: {},
  sandbox: 'unshare',
  journal: null,
  uptime_seconds: 1,
})

export type LinkKey = { device: string; key: KeyObject; audience: string }

/** Enrols as an agent that calls out, and keeps its key. */
export async function enrolledKey(test: MeshApi, url: string, device: string, token: string): Promise<LinkKey> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const body = JSON.stringify({ token, agent_key: writePublicKey(publicKey) })
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${url}/mesh/enrolments`, { method: 'POST', headers, body })
  if (response.status !== 201) throw new Error(await response.text())
  const audience = createHash('sha256').update(publicHalf(test.mesh.keys.root)).digest('hex')
  return { device, key: privateKey, audience }
}

export function helloOf(
  { device, key, audience }: LinkKey,
  challenge: Record<string, unknown> | undefined,
  changes: Record<string, unknown> = {},
): object {
  const unsigned = {
    kind: 'hello',
    purpose: connectionPurpose,
    device,
    nonce: challenge?.nonce,
    audience,
    run: randomUUID(),
    version: '9.9.9',
    ...changes,
  }
  return signed(unsigned, { id: 'agent', key })
}

/** Connects and proves itself; answers once it is welcome. */
export async function welcomed(url: string, own: LinkKey): Promise<LinkClient> {
  const client = await linkClient(url, own.device)
  client.say(helloOf(own, client.heard[0]))
  await eventually('the welcome', () => {
    if (client.closed) throw new Error(`closed with ${client.closed.code}: ${client.closed.reason}`)
    return client.heard.some(({ kind }) => kind === 'welcome')
  })
  return client
}
