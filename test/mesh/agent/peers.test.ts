import { execFileSync } from 'node:child_process'
import { createHash, generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals'
import { WebSocketServer } from 'ws'
import type { Agent } from '../../../mesh/agent/agent.ts'
import { keepConnected } from '../../../mesh/agent/connection.ts'
import { enrolToConnect, readConnection } from '../../../mesh/agent/enrolment.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'

/**
 * Peers that are no control plane, or a bad one: what an agent that calls out says of them, and
 * that it lives on.
 */
const place = temporaryDirectory()
const at = (name: string) => join(place.path, name)
const pem = (name: string) => readFileSync(at(name), 'utf8')
const servers: Server[] = []
const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})
afterAll(() => {
  for (const server of servers) server.close()
  place.remove()
})

const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe', cwd: place.path })
const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/**
 * An authority, and what it signed for 127.0.0.1: one that holds, one that is over, one for another
 * name.
 */
beforeAll(() => {
  for (const name of ['ca', 'other-ca'])
    openssl(
      'req',
      '-x509',
      ...curve,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.pem`,
      '-days',
      '9',
      '-subj',
      `/CN=${name}`,
    )
  const sign = (name: string, names: string, dates: string[]) => {
    writeFileSync(at(`${name}.ext`), `subjectAltName=${names}\n`)
    openssl('req', ...curve, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', '/CN=api')
    const by = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-extfile', `${name}.ext`]
    openssl('x509', '-req', '-in', `${name}.csr`, ...by, ...dates, '-out', `${name}.pem`)
  }
  sign('good', 'IP:127.0.0.1', ['-days', '1'])
  sign('expired', 'IP:127.0.0.1', ['-days', '-1'])
  sign('elsewhere', 'DNS:elsewhere.example.com', ['-days', '1'])
})

type Hear = (socket: Socket) => void

async function listening(server: Server, scheme: 'http' | 'https'): Promise<string> {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What accepts, and then does as the test says. */
async function peer(hear: Hear): Promise<string> {
  return await listening(
    createServer((socket) => {
      socket.on('error', () => {})
      ends.push(() => void socket.destroy())
      hear(socket)
    }),
    'http',
  )
}

async function tlsPeer(name: string, answer: Hear): Promise<string> {
  const server = createTlsServer({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) }, (socket) => {
    socket.on('error', () => {})
    ends.push(() => void socket.destroy())
    answer(socket)
  })
  server.on('tlsClientError', () => {})
  return await listening(server, 'https')
}

const says =
  (text: string): Hear =>
  (socket) =>
    void socket.once('data', () => socket.end(text))

/** Keeps connected there, and answers what was said so far. */
function calling(api: string, { ca = null as string | null, welcomeMs = 30_000 } = {}): string[] {
  const said: string[] = []
  const { privateKey } = generateKeyPairSync('ed25519')
  const terms = {
    api,
    ca,
    key: { id: 'agent' as const, key: privateKey },
    device: 'web-1',
    audience: 'a',
    version: '1',
  }
  const on = { say: (words: string) => void said.push(words), manifest: async () => {} }
  const kept = keepConnected({} as Agent, terms, on, welcomeMs)
  ends.push(() => kept.stop())
  return said
}

const firstOf = (said: string[]) => eventually('what the agent says', () => said[0])

test.each<[string, Hear, string]>([
  [
    'an answer that breaks off in the middle',
    (socket) =>
      void socket.once('data', () => {
        socket.write('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 100\r\n\r\n<html>')
        setTimeout(() => socket.destroy(), 20)
      }),
    'the control plane accepts no connection now (502)',
  ],
  [
    'a page in HTML',
    says('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>'),
    'the control plane answered 200. A proxy must let WebSocket pass',
  ],
  ['what speaks something else', says('SSH-2.0-OpenSSH_9.2\r\n'), 'was not reached: Parse Error'],
])('a peer that gives %s is one sentence, and is asked again', async (_what, hear, sentence) => {
  let calls = 0
  const api = await peer((socket) => {
    calls += 1
    hear(socket)
  })
  expect(await firstOf(calling(api))).toContain(sentence)
  await eventually('another try', () => calls > 1)
})

test.each<[string, Hear]>([
  ['after the accept', () => {}],
  ['in the middle of the answer', (socket) => void socket.once('data', () => socket.write('HTTP/1.1 101 Switching'))],
  [
    'in the middle of a refusal',
    (socket) => void socket.once('data', () => socket.write('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 9\r\n\r\n<')),
  ],
])('a peer that is silent %s is left after a while, and asked again', async (_what, hear) => {
  let calls = 0
  const api = await peer((socket) => {
    calls += 1
    hear(socket)
  })
  expect(await firstOf(calling(api, { welcomeMs: 200 }))).toBe(
    `${api} did not accept this agent within 0.2 s: check that the API runs there`,
  )
  await eventually('another try', () => calls > 1)
})

test('a peer that is silent after TLS is left after a while', async () => {
  const api = await tlsPeer('good', () => {})
  expect(await firstOf(calling(api, { ca: pem('ca.pem'), welcomeMs: 500 }))).toContain(
    'did not accept this agent within 0.5 s',
  )
})

test('a peer that answers pings and accepts nobody is left after a while', async () => {
  const sockets = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  ends.push(() => {
    for (const socket of sockets.clients) socket.terminate()
    sockets.close()
  })
  let calls = 0
  sockets.on('connection', (socket) => {
    calls += 1
    const pinging = setInterval(() => socket.ping(), 20)
    socket.on('close', () => clearInterval(pinging))
  })
  const { port } = await eventually('its port', () => sockets.address() as AddressInfo | null)
  const api = `http://127.0.0.1:${port}`
  expect(await firstOf(calling(api, { welcomeMs: 300 }))).toContain('did not accept this agent within 0.3 s')
  await eventually('another try', () => calls > 1)
})

const unpinned = /is not trusted: its certificate is from an authority that this host does not know.*--ca-sha256/
const pinned = /is not trusted: its certificate is not from the authority that this host pinned/
test.each<[string, string, string | null, RegExp]>([
  ['an authority that nobody knows', 'good', null, unpinned],
  ['another authority than the pinned one', 'good', 'other-ca.pem', pinned],
  [
    'a certificate that is over',
    'expired',
    'ca.pem',
    /is not trusted: its certificate has expired: renew the certificate on the control plane/,
  ],
  ['a certificate for another name', 'elsewhere', 'ca.pem', /is for another name: use the name in its certificate/],
])('%s: the connection and the enrolment report it, and nothing is sent or kept', async (_what, name, ca, sentence) => {
  let heard = ''
  const authority = pem(ca ?? 'ca.pem')
  const api = await tlsPeer(name, (socket) => {
    socket.on('data', (bytes) => {
      heard += bytes
      // The authority itself is asked for over a connection that proves nothing.
      if (heard.includes('/mesh/authority'))
        socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${authority.length}\r\n\r\n${authority}`)
    })
  })
  expect(await firstOf(calling(api, { ca: ca === null ? null : authority }))).toMatch(sentence)
  const caSha256 = ca === null ? null : createHash('sha256').update(authority).digest('hex')
  const state = temporaryDirectory()
  const enrolling = enrolToConnect({ state: state.path }, { api, token: 'nst_secret', caSha256, isPlainAllowed: false })
  await expect(enrolling).rejects.toMatchObject({ name: 'NotEnrolled', message: expect.stringMatching(sentence) })
  expect(existsSync(join(state.path, 'connection.json'))).toBe(false)
  expect(heard).not.toContain('nst_secret')
  state.remove()
})

test.each<[string, (digest: string) => string, string]>([
  ['cut off', (digest) => digest.slice(0, 40), '--ca-sha256 needs 64 hexadecimal digits, and this has 40 characters'],
  [
    'of another authority',
    (digest) => digest.replace(/^./, (first) => (first === '0' ? '1' : '0')),
    'an attacker may intercept the connection',
  ],
  ['in capitals', (digest) => digest.toUpperCase(), 'The response is not from a control plane'],
])('a digest %s', async (_what, change, sentence) => {
  const authority = pem('ca.pem')
  let asked = ''
  const api = await tlsPeer('good', (socket) => {
    socket.on('data', (bytes) => {
      asked += bytes
      const body = asked.includes('/mesh/enrolments') ? '{}' : authority
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    })
  })
  const caSha256 = change(createHash('sha256').update(authority).digest('hex'))
  const enrolling = enrolToConnect({ state: at('nowhere') }, { api, token: 'nst_x', caSha256, isPlainAllowed: false })
  await expect(enrolling).rejects.toThrow(sentence)
})

test('a truncated file of an enrolment is named, with the remedy', () => {
  writeFileSync(at('connection.json'), '{"api":"https://')
  expect(() => readConnection({ state: place.path })).toThrow(
    `${at('connection.json')} is damaged: enrol this host again with a new token.`,
  )
})
