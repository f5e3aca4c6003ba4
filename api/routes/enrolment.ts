import { z } from '@hono/zod-openapi'
import type { Hono } from 'hono'
import { recordAudit } from '../../db/audit.ts'
import { type DeviceRow, deviceById, deviceByRefresh, markEnrolled, redeemEnrolment } from '../../db/devices.ts'
import { requireMesh } from '../../effects/devices/executor.ts'
import { isManifestStale, renewManifest } from '../../effects/devices/mesh.ts'
import { publicHalf } from '../../mesh/keys.ts'
import type { ApiDeps } from '../deps.ts'
import { afterFailure } from '../http/authenticate.ts'
import { jsonBody } from '../http/body.ts'
import { type Context, getCallerAddress as callerOf, type Env } from '../http/context.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'

const shown = z.strictObject({ token: z.string().regex(/^nst_[\w-]{43}$/, 'is no token of an enrolment') })

/**
 * Doors for devices, which have no token of the API: enrolment by a one-time token, and the next manifest by the secret that the
 * enrolment gave. What they hand out is signed and is one device's own.
 */
export function enrolmentRoutes(app: Hono<Env>, deps: ApiDeps): void {
  const { db } = deps
  app.use('/mesh/*', limitBody)

  app.post('/mesh/enrolments', async (c) => {
    const mesh = requireMesh(deps)
    const { token } = await read(c)
    const enrolled = await db.transaction().execute(async (trx) => {
      const id = await redeemEnrolment(trx, token)
      const device = id === null ? null : await deviceById(trx, id)
      if (!device || device.revokedAt) return null
      const refresh = await markEnrolled(trx, device.id)
      const manifest = await renewManifest(trx, mesh, device)
      await recordAudit(trx, {
        who: device.id,
        what: 'device.enrolled',
        subject: device.id,
        detail: `Enrolled, manifest ${manifest.id}`,
        address: callerOf(c),
      })
      return { device: device.id, root_public_key: publicHalf(mesh.keys.root), manifest, refresh_token: refresh }
    })
    if (!enrolled) throw await refusal(deps, c, 'a token that enrols no device: unknown, used or too old')
    return c.json(enrolled, 201)
  })

  app.post('/mesh/manifests', async (c) => {
    const mesh = requireMesh(deps)
    const { token } = await read(c)
    const device = await deviceByRefresh(db, token)
    if (!device) throw await refusal(deps, c, 'a token that no device has: unknown, replaced or revoked')
    return c.json({ device: device.id, manifest: await current(deps, mesh, device) })
  })
}

async function current(deps: ApiDeps, mesh: ReturnType<typeof requireMesh>, device: DeviceRow) {
  if (!(await isManifestStale(deps.db, device))) return device.manifest
  return await deps.db.transaction().execute((trx) => renewManifest(trx, mesh, device))
}

async function read(c: Context) {
  const parsed = shown.safeParse(await jsonBody(c))
  if (!parsed.success) throw new Problem(422, 'INVALID', 'Send { "token": … }.')
  return parsed.data
}

/** Writes the refusal into the audit until there are too many. The token itself is not written. */
async function refusal({ db }: ApiDeps, c: Context, detail: string): Promise<Problem> {
  const flood = await afterFailure(db, c)
  if (flood) return flood
  await recordAudit(db, {
    who: 'unknown',
    what: 'security.enrolment_refused',
    subject: 'mesh',
    detail: `Showed ${detail}`,
    address: callerOf(c),
  })
  return new Problem(403, 'ENROLMENT_REFUSED', `This is ${detail}. Ask for a new one: nightshift mesh enroll.`)
}
