import { createHmac } from 'node:crypto'
import * as openid from 'openid-client'
import type { PersonRole } from '../domain/permissions.ts'
import type { Identity } from '../domain/sign-in.ts'

export type OidcSettings = {
  issuer: string
  clientId: string
  clientSecret: string
  scopes: string
  groupsClaim: string
  roles: Record<string, PersonRole>
  /** The public address of Nightshift, to which the provider redirects people. */
  publicUrl: string
}

/**
 * A failed sign-in. `refused`: the provider refused, or its response was rejected. `unreachable`:
 * no connection to the provider. The error never contains the provider's text.
 */
export class OidcError extends Error {
  override name = 'OidcError' as const
  readonly kind: 'refused' | 'unreachable'
  constructor(kind: 'refused' | 'unreachable', message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

export type Oidc = {
  settings: OidcSettings
  /** Returns the provider's address to which a browser with this secret is redirected. */
  start(secret: string): Promise<URL>
  /** Returns the person who signed in, if this browser has the secret. */
  finish(secret: string, query: string): Promise<Identity>
}

const answerWithinSeconds = 5
/**
 * Milliseconds after which a provider's settings are read again. Settings rarely change, and an
 * unknown key makes the keys be fetched again anyway.
 */
const rediscoverAfterMs = 3_600_000
const callbackPath = '/auth/oidc/callback'

/**
 * Makes the code flow with PKCE. Does not read the provider's settings before the first sign-in,
 * because the provider may be down at the start.
 */
export function createOidc(settings: OidcSettings): Oidc {
  let known: { configuration: Promise<openid.Configuration>; atMs: number } | null = null
  function configuration(): Promise<openid.Configuration> {
    if (known && performance.now() - known.atMs < rediscoverAfterMs) return known.configuration
    const mine = { configuration: discover(settings), atMs: performance.now() }
    known = mine
    // Drops a failure, so that the next person tries again.
    mine.configuration.catch(() => {
      if (known === mine) known = null
    })
    return mine.configuration
  }
  return {
    settings,
    start: (secret) =>
      translated(async () =>
        openid.buildAuthorizationUrl(await configuration(), {
          redirect_uri: new URL(callbackPath, settings.publicUrl).href,
          scope: settings.scopes,
          state: part(secret, 'state'),
          nonce: part(secret, 'nonce'),
          code_challenge: await openid.calculatePKCECodeChallenge(part(secret, 'verifier')),
          code_challenge_method: 'S256',
        }),
      ),
    finish: (secret, query) =>
      translated(async () => {
        const config = await configuration()
        const url = new URL(`${callbackPath}${query}`, settings.publicUrl)
        const answer = await openid.authorizationCodeGrant(config, url, {
          expectedState: part(secret, 'state'),
          expectedNonce: part(secret, 'nonce'),
          pkceCodeVerifier: part(secret, 'verifier'),
          idTokenExpected: true,
        })
        const claims = answer.claims() as openid.IDToken
        const told = toldIn(claims, settings.groupsClaim)
        if ((told.groups !== null && told.name !== null) || !config.serverMetadata().userinfo_endpoint)
          return identityOf(told)
        // Reads the user info: in the code flow, the provider returns a scope's claims there and
        // not in the token (OpenID Connect Core, 5.4).
        const more = await openid.fetchUserInfo(config, answer.access_token, claims.sub)
        const { name, groups } = toldIn({ ...more, sub: claims.sub, iss: claims.iss }, settings.groupsClaim)
        return identityOf({ ...told, name: told.name ?? name, groups: told.groups ?? groups })
      }),
  }
}

/**
 * Derives state, nonce and verifier of one sign-in from the browser's secret. In another browser
 * the response then has the wrong state. A sign-in that is not completed stores nothing.
 */
function part(secret: string, what: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', secret).update(what).digest('base64url')
}

async function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<openid.Configuration> {
  const url = new URL(issuer)
  return await openid.discovery(
    url,
    clientId,
    { [openid.clockTolerance]: 30 },
    clientSecret ? openid.ClientSecretBasic(clientSecret) : openid.None(),
    {
      timeout: answerWithinSeconds,
      [openid.customFetch]: asked,
      // Checks signatures even over TLS. Without TLS (config/settings.ts allows that only on this
      // machine), signatures are the only proof.
      execute: [openid.enableNonRepudiationChecks, ...(url.protocol === 'http:' ? [openid.allowInsecureRequests] : [])],
    },
  )
}

const asked: openid.CustomFetch = async (url, options) => {
  let response: Response
  try {
    response = await fetch(url, options as RequestInit)
  } catch (error) {
    throw new OidcError('unreachable', 'the provider does not answer', error)
  }
  if (response.status >= 500) throw new OidcError('unreachable', `the provider answered ${response.status}`)
  return response
}

async function translated<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
      if (cause instanceof OidcError) throw cause
      if (cause.name === 'TimeoutError') throw new OidcError('unreachable', 'the provider does not answer', error)
    }
    const { code, error: word } = error as { code?: unknown; error?: unknown }
    const said = [word, code].find((each) => typeof each === 'string' && /^\w{1,40}$/.test(each))
    throw new OidcError('refused', said ? `the sign-in was refused: ${said}` : 'the sign-in was refused', error)
  }
}

type Told = { issuer: string; subject: string; name: string | null; groups: string[] | null }

function toldIn(claims: Record<string, unknown>, groupsClaim: string): Told {
  const { iss, sub, preferred_username, email, email_verified, name } = claims
  // Ignores an unverified email address: it may belong to another person, and rows would show it
  // like a name.
  const address = email_verified === true || email_verified === 'true' ? email : null
  const called = [preferred_username, address, name].find((each) => typeof each === 'string' && each !== '')
  return {
    issuer: String(iss),
    subject: String(sub),
    name: (called as string | undefined) ?? null,
    groups: groupsIn(claims, groupsClaim),
  }
}

function identityOf({ issuer, subject, name, groups }: Told): Identity {
  return { issuer, subject, name: name ?? '', groups: groups ?? [] }
}

/** Reads the claim by its name, or by a path such as `realm_access.roles`. Null if it is absent. */
function groupsIn(claims: object, claim: string): string[] | null {
  let value: unknown = (claims as Record<string, unknown>)[claim]
  if (value === undefined) {
    value = claims
    for (const key of claim.split('.')) {
      value =
        typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined
    }
  }
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string').slice(0, 1_000) : null
}
