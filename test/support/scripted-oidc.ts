import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import Provider from 'oidc-provider'

export type SigningKey = { kid: string; privateKey: CryptoKey; jwk: object }

export async function signingKey(kid: string): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true })
  return { kid, privateKey, jwk: { ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' } }
}

/** Makes another ID token of the one that the issuer made. */
export type Forger = (token: { claims: Record<string, unknown>; text: string }) => Promise<string> | string

export type RealOidc = {
  issuer: string
  clientId: string
  clientSecret: string
  /** The signed-in person's claims. */
  person: Record<string, unknown> & { sub: string }
  /** What somebody between the issuer and us makes of its ID tokens; null leaves them alone. */
  forger: Forger | null
  /** The issuer starts over with this key in place of all others. */
  rotate(key: SigningKey): void
  stop(): Promise<void>
}

/**
 * The issuer of the package `oidc-provider`, over HTTP, which signs its one person in without
 * asking.
 */
export async function startRealOidc(redirectUri: string, key: SigningKey): Promise<RealOidc> {
  let answer: RequestListener = () => {}
  const server: Server = createServer((request, response) => answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const oidc: RealOidc = {
    issuer,
    clientId: 'nightshift',
    clientSecret: 'of-the-client',
    forger: null,
    person: { sub: 'u-1', preferred_username: 'anna', groups: ['sre'] },
    rotate(next) {
      answer = handlerOf(oidc, redirectUri, next)
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  oidc.rotate(key)
  return oidc
}

function handlerOf(oidc: RealOidc, redirectUri: string, key: SigningKey): RequestListener {
  const { clientId } = oidc
  const provider = new Provider(oidc.issuer, {
    clients: [{ client_id: clientId, client_secret: oidc.clientSecret, redirect_uris: [redirectUri] }],
    jwks: { keys: [key.jwk] },
    cookies: { keys: ['of the tests'] },
    // As the specification has it: what the scopes ask for is at the userinfo endpoint, not in the
    // ID token.
    claims: { openid: ['sub'], profile: ['preferred_username', 'name', 'groups'], email: ['email', 'email_verified'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: () => '/interaction' },
    findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ ...oidc.person, sub: accountId }) }),
    async loadExistingGrant({ oidc: { session } }: { oidc: { session: { accountId: string } } }) {
      const grant = new provider.Grant({ accountId: session.accountId, clientId })
      grant.addOIDCScope('openid profile email')
      await grant.save()
      return grant
    },
  })
  provider.use(async (context, next) => {
    await next()
    const text = context.path === '/token' ? context.body?.id_token : null
    if (typeof text === 'string' && oidc.forger)
      context.body.id_token = await oidc.forger({ text, claims: claimsOf(text) })
  })
  const handle = provider.callback()
  return (request, response) => {
    if (!request.url?.startsWith('/interaction')) return handle(request, response)
    provider
      .interactionFinished(request, response, { login: { accountId: oidc.person.sub } })
      .catch((error: unknown) => response.writeHead(500).end(String(error)))
  }
}

function claimsOf(text: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString('utf8'))
}

/** The same token with other claims, signed as well as this key can. */
export async function signed(claims: Record<string, unknown>, { kid, privateKey }: SigningKey): Promise<string> {
  return await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid }).sign(privateKey)
}

/** A browser at the issuer: follows its redirects with its cookies until they lead elsewhere. */
export async function throughIssuer(location: string): Promise<string> {
  const { origin } = new URL(location)
  const cookies = new Map<string, string>()
  let at = location
  for (let hop = 0; hop < 10; hop += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(at, { redirect: 'manual', headers: cookie ? { cookie } : {} })
    for (const each of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(each) ?? []
      if (name) cookies.set(name, value ?? '')
    }
    const next = response.headers.get('location')
    if (!next) throw new Error(`the issuer answered ${response.status}: ${(await response.text()).slice(0, 300)}`)
    at = new URL(next, at).href
    if (new URL(at).origin !== origin) return at
  }
  throw new Error(`the issuer never let go: ${at}`)
}

/**
 * What the provider does next; each is one way in which a provider, or somebody who plays it, can
 * be wrong.
 */
export type Mood = {
  /** The signed-in person, as claims of the ID token. */
  person: Record<string, unknown>
  /** Claims that only `/userinfo` tells. */
  userinfo: Record<string, unknown>
  /** Changes the claims after they are right. */
  claims: Record<string, unknown>
  forged: boolean
  unsigned: boolean
  down: boolean
  broken: boolean
  denies: boolean
}

export type ScriptedOidc = {
  issuer: string
  clientId: string
  clientSecret: string
  mood: Mood
  /** Paths asked, oldest first. */
  asked: string[]
  stop(): Promise<void>
}

type Grant = { challenge: string; nonce: string; redirectUri: string }

const calm = (): Mood => ({
  person: { sub: 'u-1', preferred_username: 'anna', groups: ['sre'] },
  userinfo: {},
  claims: {},
  forged: false,
  unsigned: false,
  down: false,
  broken: false,
  denies: false,
})

/**
 * A provider of OpenID Connect over real HTTP with real signatures, which signs everybody in
 * without asking.
 */
export async function startScriptedOidc(): Promise<ScriptedOidc> {
  const { privateKey, publicKey } = await generateKeyPair('RS256')
  const stranger = await generateKeyPair('RS256')
  const jwk = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' }
  const grants = new Map<string, Grant>()
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => send(response, 500, { error: String(error) }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const oidc: ScriptedOidc = {
    issuer,
    clientId: 'nightshift',
    clientSecret: 'of the client',
    mood: calm(),
    asked: [],
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', issuer)
    oidc.asked.push(url.pathname)
    if (oidc.mood.down) return void request.socket.destroy()
    if (oidc.mood.broken) return send(response, 500, { error: 'server_error' })
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        return send(response, 200, {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          userinfo_endpoint: `${issuer}/userinfo`,
          response_types_supported: ['code'],
          subject_types_supported: ['public'],
          id_token_signing_alg_values_supported: ['RS256'],
          code_challenge_methods_supported: ['S256'],
        })
      case '/jwks':
        return send(response, 200, { keys: [jwk] })
      case '/authorize':
        return authorize(url.searchParams, response)
      case '/token':
        return await token(request, response)
      case '/userinfo':
        return send(response, 200, { sub: oidc.mood.person.sub, ...oidc.mood.userinfo })
      default:
        return send(response, 404, { error: 'not_found' })
    }
  }

  function authorize(asked: URLSearchParams, response: ServerResponse): void {
    const back = new URL(asked.get('redirect_uri') ?? '')
    back.searchParams.set('state', asked.get('state') ?? '')
    if (oidc.mood.denies) {
      back.searchParams.set('error', 'access_denied')
      back.searchParams.set('error_description', '<script>alert(1)</script>')
    } else {
      const code = randomUUID()
      const [challenge, nonce] = [asked.get('code_challenge') ?? '', asked.get('nonce') ?? '']
      grants.set(code, { challenge, nonce, redirectUri: asked.get('redirect_uri') ?? '' })
      back.searchParams.set('code', code)
    }
    response.writeHead(303, { location: back.href }).end()
  }

  async function token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request) body += chunk
    const form = new URLSearchParams(body)
    const credentials = Buffer.from(`${oidc.clientId}:${oidc.clientSecret.replaceAll(' ', '+')}`).toString('base64')
    if (request.headers.authorization !== `Basic ${credentials}`)
      return send(response, 401, { error: 'invalid_client' })
    const grant = grants.get(form.get('code') ?? '')
    grants.delete(form.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url')
    if (grant?.challenge !== challenge || grant.redirectUri !== form.get('redirect_uri')) {
      return send(response, 400, { error: 'invalid_grant' })
    }
    send(response, 200, { access_token: randomUUID(), token_type: 'Bearer', id_token: await idToken(grant) })
  }

  async function idToken({ nonce }: Grant): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    const { person, claims, forged, unsigned } = oidc.mood
    const payload = { iss: issuer, aud: oidc.clientId, iat: now, exp: now + 300, nonce, ...person, ...claims }
    if (unsigned) {
      const parts = [{ alg: 'none' }, payload].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      return `${parts.join('.')}.`
    }
    const key: CryptoKey = forged ? stranger.privateKey : privateKey
    return await new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid: 'k1' }).sign(key)
  }

  return oidc
}

/** A provider that is as it should be. */
export function calmDown(oidc: ScriptedOidc): void {
  oidc.mood = calm()
  oidc.asked.length = 0
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
