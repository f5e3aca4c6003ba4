import { createHash, randomBytes } from 'node:crypto'
import type { Hono } from 'hono'
import { deleteCookie, getCookie, setCookie } from 'hono/cookie'
import { html } from 'hono/html'
import { type Oidc, OidcError } from '../../clients/oidc.ts'
import { signInAs, signOutEverywhere } from '../../db/access/operators.ts'
import { countAttempt, forgetAttempts } from '../../db/access/rate-limits.ts'
import { endSession, openSession } from '../../db/access/sessions.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { type Identity, localReturnPath, operatorNameOf, roleOfGroups } from '../../domain/sign-in.ts'
import { type ApiDeps, type Context, type Env, getCallerAddress } from '../deps.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'
import { sessionCookie, setSessionCookie } from '../http/session-cookie.ts'

/** Minutes for a sign-in, which are enough to find the phone with the second factor. */
const tryMinutes = 10

/**
 * Routes for sign-in through a provider of OpenID Connect. Without a provider, the routes do not
 * exist.
 */
export function oidcRoutes(app: Hono<Env>, deps: ApiDeps): void {
  const { oidc } = deps
  app.get('/auth/methods', (c) => c.json({ token: true, oidc: oidc !== null }))
  if (!oidc) return

  app.get('/auth/oidc/start', async (c) => {
    const secret = randomBytes(32).toString('base64url')
    const url = await answered(deps, c, () => oidc.start(secret))
    if (url instanceof Response) return url
    rememberTry(c, oidc, `${secret} ${localReturnPath(c.req.query('returnTo'))}`)
    return c.redirect(url.href, 303)
  })

  app.get('/auth/oidc/callback', async (c) => {
    const [, secret, returnTo] = /^([\w-]{43}) (.*)$/.exec(forgetTry(c, oidc) ?? '') ?? []
    const identity = await answered(deps, c, async () => {
      if (!secret) throw new Problem(400, 'NO_SIGN_IN', 'This browser has not started a sign-in. Start again.')
      return await finishOnce(deps, oidc, secret, new URL(c.req.url).search)
    })
    if (identity instanceof Response) return identity
    const entered = await answered(deps, c, () => enterByProvider(deps, oidc, c, identity))
    if (entered instanceof Response) return entered
    // Checks the path again, because a browser may send any text as its cookie.
    return c.redirect(localReturnPath(returnTo), 303)
  })
}

/**
 * Finishes a sign-in for one request. If a browser repeats the request, the code must not be sent
 * twice: the provider would then revoke what it issued for the first request (RFC 6749, 4.1.2), and
 * neither request would sign in. While the provider cannot be reached, the request may be repeated.
 */
async function finishOnce({ db }: ApiDeps, oidc: Oidc, secret: string, query: string): Promise<Identity> {
  const subject = `sign_in:${createHash('sha256').update(secret).digest('hex')}`
  const counted = await countAttempt(db, subject, { attempts: 1, seconds: tryMinutes * 60 })
  if (counted.over) throw new Problem(401, 'SIGN_IN_REFUSED', 'This sign-in was already finished. Start again.')
  try {
    return await oidc.finish(secret, query)
  } catch (error) {
    if (error instanceof OidcError && error.kind === 'unreachable') await forgetAttempts(db, subject)
    throw error
  }
}

async function enterByProvider(deps: ApiDeps, oidc: Oidc, c: Context, identity: Identity): Promise<void> {
  const { db, publicUrl } = deps
  const role = roleOfGroups(identity.groups, oidc.settings.roles)
  if (!role) {
    const known = await signOutEverywhere(db, identity)
    const said = `None of your groups has a role in Nightshift, ${operatorNameOf(identity.name)}. Ask the administrators of this server.`
    throw new Refused(known ?? 'unknown', 'NO_ROLE', said)
  }
  const before = sessionCookie(c, publicUrl)
  const id = await db.transaction().execute(async (trx) => {
    const signedIn = await signInAs(trx, identity, role)
    if (signedIn.outcome === 'disabled') throw new Refused(signedIn.name, 'DISABLED', `${signedIn.name} is disabled.`)
    const opened = await openSession(trx, signedIn.tokenId)
    if (!opened) throw new Problem(503, 'TRY_AGAIN', 'Somebody ended this sign-in before it was finished. Start again.')
    if (before) await endSession(trx, before)
    await recordAudit(trx, {
      who: signedIn.name,
      what: 'sign_in.done',
      subject: 'oidc',
      detail: `Signed in as ${signedIn.authority}`,
      address: getCallerAddress(c),
    })
    return opened
  })
  setSessionCookie(c, publicUrl, id)
}

/** Thrown if the provider signed in a person who has no role in Nightshift. */
class Refused extends Problem {
  readonly who: string
  constructor(who: string, code: string, detail: string) {
    super(403, code, detail)
    this.who = who
  }
}

/** Runs a step of a sign-in. A refusal is audited, and becomes a page that a person reads. */
async function answered<T>(deps: ApiDeps, c: Context, step: () => Promise<T>): Promise<T | Response> {
  try {
    return await step()
  } catch (error) {
    const refusal = error instanceof OidcError ? problemOf(error) : error
    if (!(refusal instanceof Problem)) throw error
    deps.log.warn({ code: refusal.code, cause: error instanceof Error ? error.message : null }, 'no sign-in by OIDC')
    const flood = refusal.status === 401 ? await afterFailure(deps.db, c) : null
    if (!flood && refusal.status < 500 && refusal.code !== 'NO_SIGN_IN') {
      const who = refusal instanceof Refused ? refusal.who : 'unknown'
      const detail = error instanceof Error ? error.message : refusal.message
      await recordAudit(deps.db, {
        who,
        what: 'sign_in.refused',
        subject: 'oidc',
        detail,
        address: getCallerAddress(c),
      })
    }
    const problem = flood ?? refusal
    for (const [name, value] of Object.entries(problem.headers)) c.header(name, value)
    c.header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
    c.header('x-problem-code', problem.code)
    return c.html(page(problem.message), problem.status as 400)
  }
}

function problemOf({ kind, message }: OidcError): Problem {
  if (kind === 'unreachable') return new Problem(503, 'PROVIDER_UNREACHABLE', `You cannot sign in now: ${message}.`)
  return new Problem(401, 'SIGN_IN_REFUSED', `No sign-in: ${message}.`)
}

function page(message: string): ReturnType<typeof html> {
  return html`<!doctype html><html lang="en"><meta charset="utf-8"><title>Nightshift</title>
<p>${message}</p><p><a href="/auth/oidc/start">Sign in again</a> or <a href="/">go to the start page</a>.</p></html>
`
}

/**
 * Returns the name of the cookie for a sign-in. With the prefix `__Host-`, over https and on this
 * machine, browsers refuse a cookie from another host.
 */
function cookieOf({ settings }: Oidc): { name: string; secure: boolean } {
  const { protocol, hostname } = new URL(settings.publicUrl)
  const secure = protocol === 'https:' || hostname === 'localhost' || /^127(\.\d+){3}$/.test(hostname)
  return { name: secure ? '__Host-nightshift-oidc' : 'nightshift-oidc', secure }
}

/** Sets `Lax`, because the provider sends the browser back from its own pages to this server. */
function rememberTry(c: Context, oidc: Oidc, value: string): void {
  const { name, secure } = cookieOf(oidc)
  setCookie(c, name, value, { path: '/', httpOnly: true, sameSite: 'Lax', secure, maxAge: tryMinutes * 60 })
}

function forgetTry(c: Context, oidc: Oidc): string | null {
  const { name, secure } = cookieOf(oidc)
  const value = getCookie(c, name) ?? null
  deleteCookie(c, name, { path: '/', secure })
  return value
}
