import { createPrivateKey, randomUUID } from 'node:crypto'
import { WebSocket } from 'ws'
import { connectionPath, connectionProtocol, connectionPurpose } from '../domain/mesh-connection.ts'
import { packFrame, readAsk, readFrame } from '../mesh/frames.ts'
import { signed } from '../mesh/sign.ts'

/**
 * Runs many agents in one process. Each agent connects to the API with a separate connection and
 * key. Start `light-agents.ts` with a JSON line `{ api, audience, agents: [{ device, key }] }` on
 * its input. The agents do no work and respond at once. Prints `connected` when all are connected.
 */
type Given = { api: string; audience: string; agents: { device: string; key: string }[] }

let text = ''
for await (const chunk of process.stdin) text += chunk
const { api, audience, agents } = JSON.parse(text) as Given
await Promise.all(agents.map(connect))
console.log('connected')

function connect({ device, key }: Given['agents'][number]): Promise<void> {
  const socket = new WebSocket(`${api.replace('http', 'ws')}${connectionPath}`, connectionProtocol, {
    perMessageDeflate: false,
  })
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.on('error', reject)
  socket.on('close', (code) => reject(new Error(`${device} was closed: ${code}`)))
  socket.on('message', (bytes: Buffer, isBinary: boolean) => {
    if (isBinary) return answer(socket, device, bytes)
    const word = JSON.parse(bytes.toString('utf8')) as { kind: string; nonce: string }
    if (word.kind === 'welcome') resolve()
    if (word.kind !== 'challenge') return
    const { nonce } = word
    const hello = {
      kind: 'hello',
      purpose: connectionPurpose,
      device,
      nonce,
      audience,
      run: randomUUID(),
      version: 'bench',
    }
    socket.send(JSON.stringify(signed(hello, { id: 'agent', key: createPrivateKey(key) })))
  })
  return promise
}

function answer(socket: WebSocket, device: string, bytes: Buffer): void {
  const frame = readFrame(bytes)
  const asked = frame?.kind === 'ask' ? readAsk(frame.piece) : null
  if (!frame || !asked) return
  const body = asked.head.path === '/health' ? health(device) : done(device, asked.body)
  socket.send(packFrame('head', frame.exchange, Buffer.from([0, 200])))
  socket.send(packFrame('data', frame.exchange, Buffer.from(JSON.stringify(body))))
  socket.send(packFrame('end', frame.exchange))
}

function health(device: string): object {
  return {
    device,
    status: 'ready',
    reason: null,
    version: 'bench',
    manifest_id: null,
    manifest_expires_at: null,
    mode: 'user',
    unavailable: {},
    sandbox: 'unshare',
    journal: null,
    uptime_seconds: 1,
  }
}

function done(device: string, body: Buffer): object {
  const { request_id } = JSON.parse(body.toString('utf8')) as { request_id: string }
  return {
    request_id,
    device,
    status: 'done',
    ok: true,
    result: { content: 'some lines\n', sha256: '0'.repeat(64), size: 11 },
    error: null,
    approval_status: 'auto_approved',
    cmd_executed: null,
    audit_hash: '0'.repeat(64),
    truncated: false,
    duration_ms: 0,
  }
}
