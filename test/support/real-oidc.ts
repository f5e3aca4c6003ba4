import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
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
  /** Who is signed in there, as claims. */
  person: Record<string, unknown> & { sub: string }
  /** What somebody between the issuer and us makes of its ID tokens; null leaves them alone. */
  forger: Forger | null
  /** The issuer starts over with this key in place of all others. */
  rotate(key: SigningKey): void
  stop(): Promise<void>
}

/** The issuer of the package `oidc-provider`, over HTTP, which signs its one person in without asking. */
export async function startRealOidc(redirectUri: string, key: SigningKey): Promise<RealOidc> {
  let answer: RequestListener = () => {}
  const server: Server = createServer((request, response) => answer(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const oidc: RealOidc = {
    ...{ issuer, clientId: 'nightshift', clientSecret: 'of-the-client', forger: null },
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
    // As the specification has it: what the scopes ask for is at the userinfo endpoint, not in the ID token.
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
