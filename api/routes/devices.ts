import { z } from '@hono/zod-openapi'
import type { Db, Trx } from '../../db/connect.ts'
import {
  connectionOf,
  type DeviceConnection,
  forbidConnection,
  listConnections,
} from '../../db/inventory/device-connections.ts'
import {
  addDevice,
  type DeviceRow,
  deviceById,
  deviceOf,
  executableNamed,
  listDevices,
  revokeDevice,
  setDevice,
} from '../../db/inventory/devices.ts'
import { mintEnrolment } from '../../db/inventory/enrolments.ts'
import { addNodeOfDevice } from '../../db/inventory/site.ts'
import { recordAudit } from '../../db/log/audit.ts'
import { callsOf } from '../../db/writes/device-calls.ts'
import { describeDevice } from '../../domain/authority-words.ts'
import { deviceCall, listedDevice, type ShownConnection } from '../../domain/device.ts'
import { sha256 } from '../../domain/digest.ts'
import { renewManifest, requireDevice, requireMesh } from '../../effects/devices/executor.ts'
import { askHealth } from '../../effects/devices/health.ts'
import { toolsOf, unknownTools } from '../../mesh/registry.ts'
import { callCursor, cursorOf, page, pageOf, pageQuery, placeIn } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { deviceAuditRoutes } from './device-audit.ts'
import { type DeviceBody, deviceBody, deviceExample, deviceParams, shownDevice } from './enrolment.ts'
import { incidentId } from './examples.ts'

const tag = 'devices'
const example = { ...deviceExample, tools: ['exec', 'fs_read'], connection: null }

function shownWith(row: DeviceRow, connection: DeviceConnection | null): z.input<typeof listedDevice> {
  return { ...shownDevice(row), tools: toolsOf(row).map((spec) => spec.name), connection: toShown(row, connection) }
}

async function shownNow({ db }: { db: Db | Trx }, row: DeviceRow): Promise<z.input<typeof listedDevice>> {
  return shownWith(row, row.url === null ? await connectionOf(db, row.id) : null)
}

function toShown({ url }: DeviceRow, found: DeviceConnection | null): ShownConnection | null {
  if (found === null || url !== null) return null
  const { isConnected, connectedAt, endedAt, address, process, agentVersion } = found
  return { isConnected, since: isConnected ? connectedAt : endedAt, address, process, agentVersion }
}

const listDevicesEndpoint = endpoint({
  method: 'get',
  path: '/devices',
  permission: 'read',
  tag,
  summary: 'All devices, with their capabilities and last known health',
  answer: pageOf(listedDevice),
  example: { items: [example], nextCursor: null },
  async run({ scope }) {
    const connections = await listConnections(scope.db)
    const rows = await listDevices(scope)
    return { items: rows.map((row) => shownWith(row, connections.get(row.id) ?? null)), nextCursor: null }
  },
})

const getDeviceEndpoint = endpoint({
  method: 'get',
  path: '/devices/{id}',
  permission: 'read',
  tag,
  summary: 'A device',
  params: deviceParams,
  answer: listedDevice,
  example,
  problems: [404],
  run: async ({ scope, params: { id } }, deps) => await shownNow(scope, await requireDevice(deps, id)),
})

const setDeviceEndpoint = endpoint({
  method: 'put',
  path: '/devices/{id}',
  permission: 'manage_devices',
  tag,
  summary: 'Adds a device, or changes its settings',
  description:
    'A changed device gets a new manifest, which it must fetch (`nightshift mesh agent refresh`). The name of a revoked device cannot be used again. Unknown names in `toolsAllowed` are ignored, and the log of the API names them.',
  params: deviceParams,
  body: deviceBody,
  bodyExample: {
    url: deviceExample.url,
    mode: 'user',
    terms: { capabilities: [], roots: [{ path: '/srv', writable: true }] },
  },
  answer: listedDevice,
  example,
  problems: [409],
  async run({ params: { id }, body, principal }, deps) {
    const mesh = requireMesh(deps)
    const unknown = unknownTools(body.toolsAllowed)
    if (unknown.length > 0) deps.log.warn({ device: id, unknown }, 'device_mesh tools_allowed lists unknown tool')
    return await deps.db.transaction().execute(async (trx) => {
      const before = await deviceById(trx, id)
      if (before?.revokedAt) throw new Problem(409, 'REVOKED', `${id} was revoked. Give the device another name.`)
      const { reason, resource, ...settings } = body
      if (before) await setDevice(trx, id, settings)
      else {
        // Adds a node for the device on a site without a platform.
        if (!deps.platform && !(await executableNamed(trx, resource?.id ?? id)))
          await addNodeOfDevice(trx, resource?.id ?? id, body.url)
        await addDevice(trx, { id, resource: await freeResource(trx, id, resource), ...settings })
      }
      const made = (await deviceById(trx, id)) as DeviceRow
      if (before?.enrolledAt) await renewManifest(trx, mesh, made)
      // Ends a connection that the agent still has, because the agent only listens from now on.
      if (before && made.url !== null) await forbidConnection(trx, id)
      await recordAudit(trx, {
        who: principal.name,
        what: before ? 'device.changed' : 'device.added',
        subject: id,
        detail: [describeDevice(made), reason].filter(Boolean).join(': '),
      })
      return await shownNow({ db: trx }, (await deviceById(trx, id)) as DeviceRow)
    })
  },
})

const enrolDeviceEndpoint = endpoint({
  method: 'post',
  path: '/devices/{id}/enrolment',
  permission: 'manage_devices',
  tag,
  summary: 'Mints the one-time token that enrols a device',
  description:
    'The token works once, within 15 minutes, and makes earlier tokens of the device invalid. Only this response contains the token.',
  params: deviceParams,
  answer: z.object({
    device: z.string(),
    token: z.string(),
    expiresAt: z.string(),
    /** The address of this API for people, if the address is known. */
    url: z.string().nullable(),
    /** SHA-256 of the authority of the API's certificate, if the installation has its own. */
    caSha256: z.string().nullable(),
  }),
  example: {
    device: 'node-osl-1',
    token: 'nst_…',
    expiresAt: '2026-11-21T02:01:02.000000Z',
    url: 'https://nightshift.example.com',
    caSha256: null,
  },
  status: 201,
  problems: [404, 409],
  secret: true,
  async run({ params: { id }, principal }, deps) {
    const { authority } = requireMesh(deps)
    const found = await requireDevice(deps, id)
    if (found.revokedAt) throw new Problem(409, 'REVOKED', `${id} was revoked. Give the device another name.`)
    return await deps.db.transaction().execute(async (trx) => {
      const minted = await mintEnrolment(trx, id, principal.name)
      const detail = `Minted a token to enrol it, good until ${minted.expiresAt}`
      await recordAudit(trx, { who: principal.name, what: 'device.enrolment_minted', subject: id, detail })
      const caSha256 = authority === undefined ? null : sha256(authority)
      return { device: id, ...minted, url: deps.publicUrl, caSha256 }
    })
  },
})

const revokeDeviceEndpoint = endpoint({
  method: 'post',
  path: '/devices/{id}/revoke',
  permission: 'manage_devices',
  tag,
  summary: 'Revokes a device for good: it gets no more calls and no more manifests',
  params: deviceParams,
  body: z.strictObject({ reason: z.string().max(500).trim().nullable().default(null) }),
  bodyExample: { reason: 'stolen' },
  answer: z.object({ id: z.string(), revoked: z.boolean() }),
  example: { id: 'node-osl-1', revoked: true },
  problems: [404],
  async run({ params: { id }, body: { reason }, principal }, deps) {
    await requireDevice(deps, id)
    const revoked = await deps.db.transaction().execute(async (trx) => {
      const ended = await revokeDevice(trx, id)
      const detail = ['Gets no more calls', reason].filter(Boolean).join(': ')
      if (ended) await recordAudit(trx, { who: principal.name, what: 'device.revoked', subject: id, detail })
      return ended
    })
    return { id, revoked }
  },
})

const askHealthEndpoint = endpoint({
  method: 'post',
  path: '/devices/{id}/health',
  permission: 'act_on_platform',
  tag,
  summary: 'Checks the health of a device now',
  params: deviceParams,
  answer: listedDevice,
  example,
  problems: [404],
  async run({ params: { id } }, deps) {
    await askHealth(deps, await requireDevice(deps, id))
    return await shownNow(deps, await requireDevice(deps, id))
  },
})

const listDeviceCallsEndpoint = endpoint({
  method: 'get',
  path: '/devices/{id}/calls',
  permission: 'read',
  tag,
  summary: 'Calls to a device, newest first',
  params: deviceParams,
  query: z.object({ ...pageQuery, cursor: callCursor }),
  answer: pageOf(deviceCall),
  example: {
    items: [
      {
        key: `${incidentId}.1:4:tool_started:0`,
        requestId: 'req_0123456789abcdef01234567',
        deviceId: 'node-osl-1',
        incidentId,
        callId: 'c4_0',
        capability: 'fs.read',
        rehearse: false,
        authority: null,
        begunAt: '2026-11-21T01:50:00.000000Z',
        finishedAt: '2026-11-21T01:50:00.010000Z',
        ok: true,
        errorCode: null,
        approvalStatus: 'auto_approved',
        auditHash: null,
        truncated: false,
        durationMs: 3,
      },
    ],
    nextCursor: null,
  },
  problems: [404],
  async run({ scope, params: { id }, query: { limit, cursor } }, deps) {
    await requireDevice(deps, id)
    const rows = await callsOf(scope, id, { before: placeIn(cursor), limit: limit + 1 })
    return page(rows, limit, cursorOf)
  },
})

/** Finds the resource of a new device. It must be in the inventory and have no device yet. */
async function freeResource(trx: Trx, id: string, given: DeviceBody['resource']) {
  const named = await executableNamed(trx, given?.id ?? id)
  if (!named || (given && given.kind !== named.kind)) {
    throw new Problem(
      409,
      'NO_RESOURCE',
      `The inventory has no ${given?.kind ?? 'node, host or VM'} ${given?.id ?? id}.`,
    )
  }
  const same = named.id === id ? null : await executableNamed(trx, id)
  if (same)
    throw new Problem(
      409,
      'NAME_TAKEN',
      `${id} is a ${same.kind}, and a device of that name would belong to this ${same.kind}.`,
    )
  const { kind } = named
  const other = await deviceOf(trx, named)
  if (other) throw new Problem(409, 'RESOURCE_TAKEN', `${kind} ${named.id} has a device already: ${other.id}.`)
  return { kind, id: named.id }
}

export const deviceRoutes = [
  listDevicesEndpoint,
  getDeviceEndpoint,
  setDeviceEndpoint,
  enrolDeviceEndpoint,
  revokeDeviceEndpoint,
  askHealthEndpoint,
  listDeviceCallsEndpoint,
  ...deviceAuditRoutes,
]
