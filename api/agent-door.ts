import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { countAttempt } from '../db/access/rate-limits.ts'
import { type DeviceRow, deviceById } from '../db/inventory/devices.ts'
import { recordAudit } from '../db/log/audit.ts'
import {
  type ConnectionHello,
  closeCodes,
  connectionHello,
  connectionPath,
  connectionProtocol,
} from '../domain/mesh-connection.ts'
import type { DeviceConnections } from '../effects/devices/connections.ts'
import { currentManifest, type Mesh } from '../effects/devices/executor.ts'
import { askHealth } from '../effects/devices/health.ts'
import { maxAnswerFrameBytes } from '../mesh/frames.ts'
import { openLink } from '../mesh/link.ts'
import { isSigned, publicHalf, readPublicKey } from '../mesh/sign.ts'
import type { ApiDeps } from './deps.ts'
import { failedAuthentications, networkOf } from './http/rate-limits.ts'

/** Milliseconds within which an agent must identify itself. */
const helloWithinMs = 10_000
const maxHelloBytes = 4_096
/**
 * Maximum number of connections whose device is not proved yet. Another one ends the oldest,
 * because a proof takes only milliseconds.
 */
const maxUnproven = 256
/** Maximum number of connections of one device per minute, more than an unstable line makes. */
const maxPerMinute = 40

type Upgrades = {
  on(event: 'upgrade', listener: (request: IncomingMessage, socket: Duplex, head: Buffer) => void): unknown
}

type Door = {
  deps: ApiDeps
  mesh: Mesh
  connections: DeviceConnections
  audience: string
  mayConnect: (id: string) => boolean
}

/**
 * Accepts agents that connect to the API. An agent proves its identity with its key, only for this
 * connection and this control plane, before any other frame is read. Never reveals which devices
 * exist.
 */
export function openAgentDoor(server: Upgrades, deps: ApiDeps): void {
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    // Disables compression, because a compressed frame may unpack to any size.
    perMessageDeflate: false,
    maxPayload: maxAnswerFrameBytes,
    maxFragments: 4,
    handleProtocols: () => connectionProtocol,
  })
  const unproven = new Set<WebSocket>()
  const { mesh } = deps
  const door = mesh?.connections && {
    deps,
    mesh,
    connections: mesh.connections,
    audience: audienceOf(mesh),
    mayConnect: perMinute(maxPerMinute),
  }
  server.on('upgrade', (request, socket, head) => {
    socket.on('error', () => socket.destroy())
    const refusal = whyNoUpgrade(deps, request)
    if (refusal || !door)
      return refuse(socket, refusal ?? { status: '404 Not Found', detail: 'This API has no mesh of devices.' })
    sockets.handleUpgrade(request, socket, head, (opened) => {
      unproven.add(opened)
      const [oldest] = unproven
      if (unproven.size > maxUnproven) oldest?.terminate()
      const address = request.socket.remoteAddress ?? 'unknown'
      prove(door, opened, address, () => unproven.delete(opened)).catch((error: unknown) => {
        deps.log.error({ err: error }, "an agent's connection could not be checked")
        opened.close(1013, 'try again later')
      })
    })
  })
}

/**
 * Returns the name by which agents know this control plane: the digest of the root key that the
 * agents pinned.
 */
function audienceOf({ keys }: Pick<Mesh, 'keys'>): string {
  return createHash('sha256').update(publicHalf(keys.root)).digest('hex')
}

type UpgradeRefusal = { status: string; detail: string }

function whyNoUpgrade({ closing }: ApiDeps, { url, headers }: IncomingMessage): UpgradeRefusal | null {
  if (url !== connectionPath) return { status: '404 Not Found', detail: 'This address does not exist.' }
  // Refuses browsers, which send the origin of their page. No page of Nightshift connects to this
  // address.
  if (headers.origin !== undefined) return { status: '403 Forbidden', detail: 'This address is for agents only.' }
  if (closing.aborted) return { status: '503 Service Unavailable', detail: 'This API process is stopping.' }
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((word) => word.trim())
  if (offered.includes(connectionProtocol)) return null
  const detail = `This control plane uses the protocol ${connectionProtocol}, and the agent offers ${offered.join(', ').slice(0, 100) || 'nothing'}. Update the older of the two.`
  return { status: '426 Upgrade Required', detail }
}

function refuse(socket: Duplex, { status, detail }: UpgradeRefusal): void {
  const body = JSON.stringify({ detail })
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`
  socket.end(head + body, () => socket.destroy())
}

/** Requests the identity of an agent, and accepts the connection if the agent proves it. */
async function prove(door: Door, socket: WebSocket, address: string, onEnd: () => void): Promise<void> {
  const nonce = randomBytes(32).toString('base64url')
  const timer = setTimeout(() => socket.terminate(), helloWithinMs)
  const said = new Promise<Buffer | null>((resolve) => {
    socket.once('message', (bytes: Buffer, isBinary) =>
      resolve(isBinary || bytes.length > maxHelloBytes ? null : bytes),
    )
    socket.once('close', () => resolve(null))
    socket.on('error', () => socket.terminate())
  })
  socket.send(JSON.stringify({ kind: 'challenge', nonce, audience: door.audience }))
  try {
    const bytes = await said
    // Pauses reading, because frames before the welcome are refused.
    socket.pause()
    if (socket.readyState !== socket.OPEN) return
    const hello = bytes === null ? null : readHello(bytes)
    const device = hello && (await provenDevice(door, hello, nonce))
    if (!hello || !device) {
      socket.resume()
      socket.close(closeCodes.refused, 'this control plane has no such device with that key, or has revoked it')
      return await noteRefusal(door, hello?.device ?? 'unknown', address)
    }
    if (!door.mayConnect(device.id)) {
      socket.resume()
      return socket.close(closeCodes.tooOften, `${device.id} connected more than ${maxPerMinute} times in a minute`)
    }
    await take(door, socket, { hello, device, address })
  } finally {
    clearTimeout(timer)
    onEnd()
  }
}

function readHello(bytes: Buffer): ConnectionHello | null {
  try {
    const parsed = connectionHello.safeParse(JSON.parse(bytes.toString('utf8')))
    return parsed.success ? parsed.data : null
  } catch {
    return null
  }
}

/**
 * Finds the device that signed the hello for this connection and this control plane. Null if no
 * device did.
 */
async function provenDevice(
  { deps, audience }: Door,
  hello: ConnectionHello,
  nonce: string,
): Promise<DeviceRow | null> {
  if (hello.nonce !== nonce || hello.audience !== audience) return null
  const device = await deviceById(deps.db, hello.device)
  if (!device?.agentKey || device.revokedAt || device.url !== null) return null
  const key = readPublicKey(device.agentKey)
  return key && isSigned(hello, key) ? device : null
}

type Proven = { hello: ConnectionHello; device: DeviceRow; address: string }

async function take(door: Door, socket: WebSocket, { hello, device, address }: Proven): Promise<void> {
  const { deps, mesh, connections } = door
  const manifest = await currentManifest(deps, mesh, device)
  if (deps.closing.aborted || socket.readyState !== socket.OPEN)
    return socket.close(closeCodes.move, 'this API process is stopping')
  const link = openLink(device.id, socket)
  await connections.hold(link, { address, run: hello.run, version: hello.version, manifest })
  socket.resume()
  deps.log.info({ device: device.id, address, version: hello.version }, 'an agent connected')
  await askHealth(deps, device)
}

/** Records a failed proof in the audit log, unless too many came from this address. */
async function noteRefusal({ deps }: Door, claimed: string, address: string): Promise<void> {
  const counted = await countAttempt(deps.db, `mesh-connection:${networkOf(address)}`, failedAuthentications)
  if (counted.over && !counted.first) return
  const detail = counted.over
    ? `More than ${failedAuthentications.attempts} connections that could not prove a device in ${failedAuthentications.seconds / 60} minutes`
    : `Connected as ${claimed} without the key of that device, or as a device that is unknown or revoked`
  await recordAudit(deps.db, { who: 'unknown', what: 'security.connection_refused', subject: 'mesh', detail, address })
}

/** Returns a function that limits the attempts per name and minute. */
function perMinute(most: number): (name: string) => boolean {
  let counts = new Map<string, number>()
  let sinceMs = performance.now()
  return (name) => {
    const nowMs = performance.now()
    if (nowMs - sinceMs > 60_000) {
      counts = new Map()
      sinceMs = nowMs
    }
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    return count <= most
  }
}
