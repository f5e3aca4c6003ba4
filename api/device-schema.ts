import { z } from '@hono/zod-openapi'
import { kindOfAddress } from '../clients/address.ts'
import type { DeviceRow } from '../db/devices.ts'
import { type Device, deviceTerms, executable, guests } from '../domain/device.ts'
import { deviceId, meshMode } from '../domain/mesh.ts'

/** Over TLS, or in the clear where nobody else is on the way: this machine, or an address of a private network as WireGuard's. */
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
  url: deviceUrl,
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
  terms: deviceTerms,
  manifestDays: z.number().int().min(1).max(366).default(90),
  reason: z.string().trim().max(500).nullable().default(null),
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
export function shownDevice({ manifest: _, ...device }: DeviceRow): Device {
  return device
}
