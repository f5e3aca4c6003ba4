import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach } from '@jest/globals'
import type { ModelError } from '../../clients/chat/answer.ts'
import { closeConnections } from '../../clients/http.ts'
import type { ModelRequest } from '../../clients/model.ts'
import { type RunningHost, runHost } from './model-hosts/host.ts'

export type Seen = { method: string; path: string; headers: Record<string, string>; body: string }
export type Play = (response: ServerResponse, seen: Seen, request: IncomingMessage) => void

export type LocalServer = { url: string; port: number; seen: Seen[]; play(next: Play): void; close(): Promise<void> }

/**
 * A real HTTP server on this machine that does what the test says and remembers what it was sent.
 */
export async function startLocalServer(): Promise<LocalServer> {
  const seen: Seen[] = []
  let current: Play = (response) => response.end()
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const one = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)])),
        body: Buffer.concat(chunks).toString(),
      }
      seen.push(one)
      current(response, one, request)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    seen,
    play(next) {
      current = next
    },
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        server.closeAllConnections()
      }),
  }
}

export function answerJson(status: number, body: unknown, headers: Record<string, string> = {}): Play {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

/**
 * A certificate for 127.0.0.1 that is its own authority, and its key, both PEM: made again each
 * time, so that none is kept.
 */
export function selfSigned(): { cert: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ecdsaWithSha256 = sequence(tagged(0x06, Buffer.from('2a8648ce3d040302', 'hex')))
  const name = sequence(
    tagged(0x31, sequence(tagged(0x06, Buffer.from('550403', 'hex')), tagged(0x0c, Buffer.from('pve1')))),
  )
  const time = (text: string) => tagged(0x17, Buffer.from(text))
  const address = tagged(0x87, Buffer.from([127, 0, 0, 1]))
  const extension = (id: string, value: Buffer) => sequence(tagged(0x06, Buffer.from(id, 'hex')), tagged(0x04, value))
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(time('200101000000Z'), time('491231000000Z')),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(
      0xa3,
      sequence(
        extension('551d11', sequence(address)),
        extension('551d13', sequence(tagged(0x01, Buffer.from([0xff])))),
      ),
    ),
  )
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)])
  const der = sequence(body, ecdsaWithSha256, tagged(0x03, signature)).toString('base64')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${der.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function sequence(...parts: Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

/** DER: a tag, a length, the value. */
function tagged(tag: number, value: Buffer): Buffer {
  const { length } = value
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255]
  return Buffer.concat([Buffer.from([tag, ...size]), value])
}

/** Hosts for the tests of one file; each ends with its test. */
export function useHosts(): (...given: Parameters<typeof runHost>) => Promise<RunningHost> {
  const running: RunningHost[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((each) => each.stop()))
  })
  afterAll(closeConnections)
  return async (...given) => {
    const host = await runHost(...given)
    running.push(host)
    return host
  }
}

export const said = { content: 'the replica lags', reasoning: 'let me think about SECRET PLANS first' }
export const apiKey = 'sk-test'
export const plain: ModelRequest = {
  model: 'gpt-5-mini',
  messages: [
    { role: 'system', content: 'you look after databases' },
    { role: 'user', content: 'why is db-osl-1 slow?' },
  ],
  temperature: 0.1,
  maxTokens: 1_024,
}
/** A later turn, with a call, its result, and two messages of the user in a row. */
export const later: ModelRequest = {
  ...plain,
  messages: [
    ...plain.messages,
    { role: 'user', content: 'the leader found this' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c1_0', type: 'function', function: { name: 'get_shard', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'c1_0', content: '{"ok":true}' },
  ],
}

export async function fault(promise: Promise<unknown>): Promise<ModelError> {
  return await promise.then(
    () => {
      throw new Error('it answered')
    },
    (error) => error as ModelError,
  )
}
