import { z } from '@hono/zod-openapi'
import type { Hono } from 'hono'
import { principalOf } from '../../db/access/principals.ts'
import { endSession, openSession, principalOfSession } from '../../db/access/sessions.ts'
import { mintSignInCode, redeemSignInCode } from '../../db/access/sign-in-codes.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { type Principal, permissionsOf } from '../../domain/permissions.ts'
import type { Session } from '../../domain/sign-in.ts'
import { type ApiDeps, type Context, type Env, getCallerAddress } from '../deps.ts'
import { requireOwnOrigin, signedIn } from '../http/authenticate.ts'
import { jsonBody } from '../http/body.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'
import { dropSessionCookie, sessionCookie, setSessionCookie } from '../http/session-cookie.ts'

const proof = z.union([z.strictObject({ token: z.string().max(512) }), z.strictObject({ code: z.string().max(512) })])

/**
 * Routes with which a browser signs in and out. The session is an opaque id in a cookie that no
 * script can read. The session stands for the token that the person entered, with the token's
 * permissions.
 */
export function sessionRoutes(app: Hono<Env>, deps: Pick<ApiDeps, 'db' | 'publicUrl' | 'commandPrefix'>): void {
  const { db, publicUrl } = deps
  app.use('/auth/*', limitBody)

  app.post('/auth/session', async (c) => {
    // Requires this server's origin only if an origin is sent: a local script sends no Origin, but
    // a page always sends one.
    if (c.req.header('origin') !== undefined) requireOwnOrigin(c, publicUrl)
    const shown = proof.safeParse(await jsonBody(c))
    if (!shown.success) throw new Problem(422, 'INVALID', 'Send { "token": … } or { "code": … }.')
    const principal = await signIn(deps, c, shown.data)
    return c.json(answer(principal, deps.commandPrefix))
  })

  app.get('/auth/session', async (c) => {
    const principal = await signedIn(db, c, publicUrl)
    if (!principal) throw new Problem(401, 'UNAUTHENTICATED', 'This browser is not signed in.')
    return c.json(answer(principal, deps.commandPrefix))
  })

  app.delete('/auth/session', async (c) => {
    requireOwnOrigin(c, publicUrl)
    const cookie = sessionCookie(c, publicUrl)
    if (cookie) await endSession(db, cookie)
    dropSessionCookie(c, publicUrl)
    return c.body(null, 204)
  })

  // Requires a token and no cookie, so that a signed-in browser cannot pass its session on.
  app.post('/auth/codes', async (c) => {
    const [, token] = /^Bearer +(\S{1,512})$/i.exec(c.req.header('authorization') ?? '') ?? []
    const principal = token ? await principalOf(db, token) : null
    if (!principal) {
      const flood = token ? await afterFailure(db, c) : null
      throw flood ?? new Problem(401, 'UNAUTHENTICATED', 'Send a token: Authorization: Bearer …')
    }
    const minted = await db.transaction().execute(async (trx) => {
      const code = await mintSignInCode(trx, principal.tokenId)
      const entry = { who: principal.name, subject: principal.tokenId, detail: 'Minted a code for a browser' }
      if (code) await recordAudit(trx, { ...entry, what: 'sign_in.code_minted', address: getCallerAddress(c) })
      return code
    })
    if (!minted) throw machine(principal)
    return c.json(minted, 201)
  })
}

type SessionAnswer = z.infer<typeof proof>

/**
 * Opens a session for a person's token, or for a code that was made with a token, and sets the
 * session's cookie. Records sign-ins, and refused attempts unless there were too many; never the
 * token.
 */
export async function signIn(
  deps: Pick<ApiDeps, 'db' | 'publicUrl'>,
  c: Context,
  shown: SessionAnswer,
): Promise<Principal> {
  const { db } = deps
  const where = { subject: 'browser', address: getCallerAddress(c) }
  try {
    return await db.transaction().execute(async (trx) => {
      const principal = await enter({ ...deps, db: trx }, c, shown)
      const detail = `Signed in as ${principal.role}`
      await recordAudit(trx, { who: principal.name, what: 'sign_in.done', detail, ...where })
      return principal
    })
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    const flood = error.status === 401 ? await afterFailure(db, c) : null
    if (flood) throw flood
    await recordAudit(db, { who: 'unknown', what: 'sign_in.refused', detail: error.message, ...where })
    throw error
  }
}

/**
 * Makes a new session id every time, so that an id that somebody planted in this browser is useless
 * (session fixation).
 */
async function enter({ db, publicUrl }: Pick<ApiDeps, 'db' | 'publicUrl'>, c: Context, shown: SessionAnswer) {
  const before = sessionCookie(c, publicUrl)
  const known = 'token' in shown ? await principalOf(db, shown.token.trim()) : null
  const tokenId = 'token' in shown ? known?.tokenId : await redeemSignInCode(db, shown.code)
  if (!tokenId) {
    const detail =
      'token' in shown
        ? 'This token is unknown, expired or revoked.'
        : 'This sign-in link was already used, or is older than ten minutes. Sign in with a token.'
    throw new Problem(401, 'UNAUTHENTICATED', detail)
  }
  const id = await openSession(db, tokenId)
  const principal = id && (await principalOfSession(db, id))
  if (!id || !principal) throw machine(known)
  if (before) await endSession(db, before)
  setSessionCookie(c, publicUrl, id)
  return principal
}

function machine(principal: Principal | null): Problem {
  const who = principal ? `${principal.name} (${principal.role})` : 'A machine'
  return new Problem(403, 'FORBIDDEN', `${who} is not a person, so its token cannot sign in.`)
}

function answer(principal: Principal, commandPrefix: string): Session {
  return { name: principal.name, role: principal.role, permissions: permissionsOf(principal), commandPrefix }
}
