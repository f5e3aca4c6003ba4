import { createECDH, createPublicKey, randomBytes, verify } from 'node:crypto'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import type { NewSubscription, PushMessage } from '../../domain/push.ts'
import { freePort } from './directory.ts'

const { decrypt } = createRequire(import.meta.url)('http_ece') as {
  decrypt(body: Buffer, options: { version: 'aes128gcm'; privateKey: unknown; authSecret: Buffer }): Buffer
}

export type Pushed = {
  headers: Record<string, string | string[] | undefined>
  message: PushMessage
  /** What the signature says of its sender (RFC 8292). */
  claims: { aud: string; exp: number; sub: string }
}

export type PushService = {
  origin: string
  /** A browser's half of a new subscription. */
  subscribe(): NewSubscription
  pushed: Pushed[]
  /** The next answer; 201 unless set. */
  answers: number[]
  close(): void
}

/**
 * A push service with browsers behind it: takes messages by RFC 8030, believes signatures alone,
 * and decrypts as the browser would.
 */
export async function startPushService(): Promise<PushService> {
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const browsers = new Map<string, { keys: ReturnType<typeof createECDH>; auth: Buffer }>()
  const service: Omit<PushService, 'close'> = { origin, subscribe, pushed: [], answers: [] }

  function subscribe(): NewSubscription {
    const keys = createECDH('prime256v1')
    keys.generateKeys()
    const auth = randomBytes(16)
    const path = `/push/${randomBytes(12).toString('hex')}`
    browsers.set(path, { keys, auth })
    const p256dh = keys.getPublicKey().toString('base64url')
    return { endpoint: `${origin}${path}`, keys: { p256dh, auth: auth.toString('base64url') } }
  }

  const server = createServer(async (request, response) => {
    const body = Buffer.from(await text(request.setEncoding('latin1')), 'latin1')
    const browser = browsers.get(request.url ?? '')
    const status = service.answers.shift() ?? (browser ? 201 : 404)
    const claims = believe(request.headers.authorization ?? '')
    if (status === 201 && browser && claims) {
      const plain = decrypt(body, { version: 'aes128gcm', privateKey: browser.keys, authSecret: browser.auth })
      service.pushed.push({ headers: request.headers, message: JSON.parse(plain.toString('utf8')), claims })
    }
    response.writeHead(claims ? status : 403).end()
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    ...service,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** The claims of `vapid t=…, k=…` where the signature is that of the key; null where it is not. */
function believe(authorization: string): Pushed['claims'] | null {
  const [, token = '', key = ''] = /^vapid t=([^,]+), k=(.+)$/.exec(authorization) ?? []
  const [head = '', payload = '', signature = ''] = token.split('.')
  const point = Buffer.from(key, 'base64url')
  if (point.length !== 65) return null
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'))
  const publicKey = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x: x ?? '', y: y ?? '' }, format: 'jwk' })
  const signed = Buffer.from(`${head}.${payload}`)
  const isGood = verify(
    'sha256',
    signed,
    { key: publicKey, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  return isGood ? JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) : null
}
