import { z } from '@hono/zod-openapi'
import type { Hono } from 'hono'
import { kindOfAddress } from '../../clients/address.ts'
import { type DeviceRow, deviceById, deviceByRefresh } from '../../db/inventory/devices.ts'
import { markEnrolled, redeemEnrolment } from '../../db/inventory/enrolments.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { type Device, deviceTerms, executable, guests } from '../../domain/device.ts'
import { deviceId, meshMode } from '../../domain/mesh.ts'
import { currentManifest, renewManifest, requireMesh } from '../../effects/devices/executor.ts'
import { knownCapability } from '../../mesh/registry.ts'
import { publicHalf, readPublicKey } from '../../mesh/sign.ts'
import { type ApiDeps, type Context, getCallerAddress as callerOf, type Env } from '../deps.ts'
import { jsonBody } from '../http/body.ts'
import { limitBody } from '../http/middleware.ts'
import { Problem } from '../http/problem.ts'
import { afterFailure } from '../http/rate-limits.ts'

const shown = z.strictObject({
  token: z.string().regex(/^nst_[\w-]{43}$/, 'is no token of an enrolment'),
  /** Public half of the key that an agent which calls out made for itself. */
  agent_key: z.string().max(200).optional(),
})

/**
 * Doors for devices, which have no API token: enrolment by a one-time token, and the next manifest
 * by the enrolment's secret. What they hand out is signed for one device.
 */
export function enrolmentRoutes(app: Hono<Env>, deps: ApiDeps): void {
  const { db } = deps
  app.use('/mesh/*', limitBody)

  app.post('/mesh/enrolments', async (c) => {
    const mesh = requireMesh(deps)
    const { token, agent_key: agentKey = null } = await read(c)
    const enrolled = await db.transaction().execute(async (trx) => {
      const id = await redeemEnrolment(trx, token)
      const device = id === null ? null : await deviceById(trx, id)
      if (!device || device.revokedAt) return null
      requireThatWay(device, agentKey)
      const refresh = await markEnrolled(trx, device.id, agentKey)
      const manifest = await renewManifest(trx, mesh, device)
      await recordAudit(trx, {
        who: device.id,
        what: 'device.enrolled',
        subject: device.id,
        detail: `Enrolled, ${agentKey === null ? 'to be called' : 'to call out'}, manifest ${manifest.id}`,
        address: callerOf(c),
      })
      return { device: device.id, root_public_key: publicHalf(mesh.keys.root), manifest, refresh_token: refresh }
    })
    if (!enrolled) throw await refusal(deps, c, 'this token enrols no device: it is unknown, used or too old')
    return c.json(enrolled, 201)
  })

  // Public: who enrols holds it against the digest that came with its token.
  app.get('/mesh/authority', (c) => {
    const { authority } = requireMesh(deps)
    if (authority === undefined)
      throw new Problem(404, 'NOT_FOUND', 'This API has no authority of its own: MESH_PUBLIC_CA_FILE is not set.')
    c.header('content-type', 'application/x-pem-file')
    return c.body(authority)
  })

  app.post('/mesh/manifests', async (c) => {
    const mesh = requireMesh(deps)
    const { token } = await read(c)
    const device = await deviceByRefresh(db, token)
    if (!device) throw await refusal(deps, c, 'no device has this token: it is unknown, replaced or revoked')
    return c.json({ device: device.id, manifest: await currentManifest(deps, mesh, device) })
  })
}

/** An agent enrols the way its device was made known; the token stays good where it does not. */
function requireThatWay({ id, url }: DeviceRow, agentKey: string | null): void {
  if (agentKey !== null && readPublicKey(agentKey) === null)
    throw new Problem(422, 'INVALID', 'agent_key is no ed25519 public key (base64 of its SPKI).')
  if (url === null && agentKey === null) {
    const detail = `${id} calls out. Run "nightshift agent --connect URL --token …" there. (To have it listen, give it an address: "nightshift mesh enroll ${id} --address URL".)`
    throw new Problem(409, 'CALLS_OUT', detail)
  }
  if (url !== null && agentKey !== null) {
    const detail = `${id} has an address, so its agent listens. Run "nightshift mesh agent enroll" there. (To call out: "nightshift mesh enroll ${id} --calls-out".)`
    throw new Problem(409, 'LISTENS', detail)
  }
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

/**
 * TLS, or plain HTTP where no third party can listen: this machine, or a private network such as
 * WireGuard's.
 */
const deviceUrl = z
  .url({ protocol: /^https?$/ })
  .max(500)
  .refine((text) => {
    // Asked even where it is no URL at all.
    if (!URL.canParse(text)) return true
    const url = new URL(text)
    if (url.username || url.password || url.search || url.hash) return false
    if (url.protocol === 'https:' || url.hostname === 'localhost') return true
    return ['loopback', 'private'].includes(kindOfAddress(url.hostname))
  }, 'must be https, or http to an address of this machine or a private network, and nothing but scheme, host, port and path')

/** What an admin sets of a device. */
export const deviceBody = z.strictObject({
  /** Left out when it is made: the node, host or VM of the same name. */
  resource: executable.optional(),
  /** Null: its agent calls out. */
  url: deviceUrl.nullable(),
  urlEnv: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]{0,60}_DEVICE_MESH_URL$/, 'is not <NAME>_DEVICE_MESH_URL')
    .nullable()
    .default(null),
  mode: meshMode,
  guests: guests.nullable().default(null),
  timeoutSeconds: z.number().int().min(1).max(3_600).default(60),
  toolsAllowed: z.array(z.string().min(1).max(64)).max(64).default([]),
  enabled: z.boolean().default(true),
  terms: deviceTerms.extend({ capabilities: z.array(knownCapability).max(200) }),
  manifestDays: z.number().int().min(1).max(366).default(90),
  reason: z.string().max(500).trim().nullable().default(null),
})
export type DeviceBody = z.infer<typeof deviceBody>

export const deviceParams = z.object({ id: deviceId })

export const deviceExample: Device = {
  id: 'node-osl-1',
  resource: { kind: 'node', id: 'node-osl-1' },
  url: 'http://10.42.0.10:7474',
  urlEnv: null,
  mode: 'user',
  guests: null,
  timeoutSeconds: 60,
  toolsAllowed: [],
  enabled: true,
  terms: deviceTerms.parse({ capabilities: [], roots: [{ path: '/srv', writable: true }] }),
  manifestDays: 90,
  manifestId: 'mft_0123456789abcdef01234567',
  manifestExpiresAt: '2027-02-19T01:46:02.000000Z',
  health: null,
  healthProblem: null,
  healthAt: null,
  createdAt: '2026-11-21T01:46:02.000000Z',
  enrolledAt: '2026-11-21T01:47:30.000000Z',
  revokedAt: null,
}

/** A device as it is answered: without its manifest, which is its own. */
export function shownDevice({ manifest: _, agentKey: __, ...device }: DeviceRow): Device {
  return device
}
