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
  token: z.string().regex(/^nst_[\w-]{43}$/, 'is not an enrolment token'),
  /** The public half of the key that the connecting agent made. */
  agent_key: z.string().max(200).optional(),
})

/**
 * Routes for devices, which have no API token: enrolment with a one-time token, and the next
 * manifest with the secret from the enrolment. Responses are signed for one device.
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
        detail: `Enrolled, ${agentKey === null ? 'listens for calls' : 'calls out'}, manifest ${manifest.id}`,
        address: callerOf(c),
      })
      return { device: device.id, root_public_key: publicHalf(mesh.keys.root), manifest, refresh_token: refresh }
    })
    if (!enrolled) throw await refusal(deps, c, 'The token for enrolment is unknown, used or expired')
    return c.json(enrolled, 201)
  })

  // Needs no sign-in, because an enrolling agent compares the authority with the digest in its
  // token.
  app.get('/mesh/authority', (c) => {
    const { authority } = requireMesh(deps)
    if (authority === undefined)
      throw new Problem(
        404,
        'NOT_FOUND',
        'MESH_PUBLIC_CA_FILE is not set, so this API has no certificate authority to send.',
      )
    c.header('content-type', 'application/x-pem-file')
    return c.body(authority)
  })

  app.post('/mesh/manifests', async (c) => {
    const mesh = requireMesh(deps)
    const { token } = await read(c)
    const device = await deviceByRefresh(db, token)
    if (!device) throw await refusal(deps, c, 'The token of the device is unknown, replaced or revoked')
    return c.json({ device: device.id, manifest: await currentManifest(deps, mesh, device) })
  })
}

/**
 * Requires that an agent enrols in the way for which its device was added: it listens or it
 * connects. Otherwise the enrolment is refused, and the token stays valid.
 */
function requireThatWay({ id, url }: DeviceRow, agentKey: string | null): void {
  if (agentKey !== null && readPublicKey(agentKey) === null)
    throw new Problem(422, 'INVALID', 'agent_key is not an ed25519 public key (base64 of its SPKI).')
  if (url === null && agentKey === null) {
    const detail = `The agent of ${id} must call out. Run "nightshift agent --connect URL --token …" on the device. (To let the agent listen instead, set an address: "nightshift mesh enroll ${id} --address URL".)`
    throw new Problem(409, 'CALLS_OUT', detail)
  }
  if (url !== null && agentKey !== null) {
    const detail = `${id} has an address, so its agent must listen. Run "nightshift mesh agent enroll" on the device. (To let the agent call out instead: "nightshift mesh enroll ${id} --calls-out".)`
    throw new Problem(409, 'LISTENS', detail)
  }
}

async function read(c: Context) {
  const parsed = shown.safeParse(await jsonBody(c))
  if (!parsed.success) throw new Problem(422, 'INVALID', 'Send { "token": … }.')
  return parsed.data
}

/** Records a refused enrolment in the audit log, without the token. Limits the records. */
async function refusal({ db }: ApiDeps, c: Context, detail: string): Promise<Problem> {
  const flood = await afterFailure(db, c)
  if (flood) return flood
  await recordAudit(db, {
    who: 'unknown',
    what: 'security.enrolment_refused',
    subject: 'mesh',
    detail,
    address: callerOf(c),
  })
  return new Problem(403, 'ENROLMENT_REFUSED', `${detail}. Create a new token: nightshift mesh enroll.`)
}

/**
 * The address of a device: TLS, or plain HTTP where no third party can listen: on this machine, or
 * in a private network such as WireGuard's.
 */
const deviceUrl = z
  .url({ protocol: /^https?$/ })
  .max(500)
  .refine((text) => {
    // Accepts a text that is not a URL, because another check refuses it.
    if (!URL.canParse(text)) return true
    const url = new URL(text)
    if (url.username || url.password || url.search || url.hash) return false
    if (url.protocol === 'https:' || url.hostname === 'localhost') return true
    return ['loopback', 'private'].includes(kindOfAddress(url.hostname))
  }, 'must be https, or http to an address of this machine or a private network, and nothing but scheme, host, port and path')

/** Settings that an admin makes for a device. */
export const deviceBody = z.strictObject({
  /**
   * The resource of the device. If absent for a new device, the node, host or VM with the device's
   * name.
   */
  resource: executable.optional(),
  /** The address at which the agent listens. Null if the agent connects to the API. */
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

/** Converts a device for a response, without its manifest and key. */
export function shownDevice({ manifest: _, agentKey: __, ...device }: DeviceRow): Device {
  return device
}
