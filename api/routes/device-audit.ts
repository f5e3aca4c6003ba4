import { z } from '@hono/zod-openapi'
import { HttpError } from '../../clients/http.ts'
import type { DeviceRow } from '../../db/inventory/devices.ts'
import { auditedCalls } from '../../db/writes/device-calls.ts'
import { auditedCall } from '../../domain/device.ts'
import { journalEntry } from '../../domain/mesh.ts'
import { requireDevice, requireMesh, wayTo } from '../../effects/devices/executor.ts'
import { InvalidDeviceResponseError, readJournal } from '../../mesh/client.ts'
import type { ApiDeps } from '../deps.ts'
import { callCursor, cursorOf, page, pageOf, placeIn } from '../http/cursor.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { deviceParams } from './enrolment.ts'
import { incidentId } from './examples.ts'

const tag = 'devices'
const hash = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
/** The two sides of an audit, in pages: rows about calls to a device, and its journal. */
export const deviceAuditRoutes = [
  endpoint({
    method: 'get',
    path: '/devices/{id}/audit',
    permission: 'audit',
    tag,
    summary: 'All calls to a device with their hashes from the log, newest first, to compare with its journal',
    params: deviceParams,
    query: z.object({
      limit: z.coerce.number().int().min(1).max(1_000).default(1_000),
      cursor: callCursor,
    }),
    answer: pageOf(auditedCall),
    example: {
      items: [
        {
          key: `${incidentId}.1:4:tool_started:0`,
          requestId: 'req_0123456789abcdef01234567',
          begunAt: '2026-11-21T01:50:00.000000Z',
          finishedAt: '2026-11-21T01:50:00.010000Z',
          auditHash: hash,
          incidentHash: hash,
        },
      ],
      nextCursor: null,
    },
    problems: [404],
    async run({ scope, params: { id }, query: { limit, cursor } }, deps) {
      await requireDevice(deps, id)
      const rows = await auditedCalls(scope, id, { before: placeIn(cursor), limit: limit + 1 })
      return page(rows, limit, cursorOf)
    },
  }),
  endpoint({
    method: 'get',
    path: '/devices/{id}/journal',
    permission: 'audit',
    tag,
    summary: "Reads the hash chain of a device's journal, without the content of entries",
    description:
      'The page starts at an entry, and has as many entries as the device sends at once. `first` is the oldest entry that the device still has.',
    params: deviceParams,
    query: z.object({ cursor: z.coerce.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER).default(0) }),
    answer: pageOf(journalEntry).extend({ first: z.number().int(), last: z.number().int() }),
    example: {
      items: [
        {
          n: 1,
          at: '2026-11-21T01:50:00.000Z',
          prev: '0'.repeat(64),
          hash,
          kind: 'done',
          request_id: 'req_0123456789abcdef01234567',
        },
      ],
      nextCursor: '1',
      first: 1,
      last: 812,
    },
    problems: [404, 424],
    async run({ params: { id }, query: { cursor } }, deps) {
      const { first, last, entries } = await journalOf(deps, await requireDevice(deps, id), cursor)
      const told = entries.at(-1)?.n ?? last
      return { items: entries, nextCursor: told < last ? String(told) : null, first, last }
    },
  }),
]

async function journalOf(deps: ApiDeps, device: DeviceRow, after: number) {
  const mesh = requireMesh(deps)
  try {
    return await readJournal(wayTo(mesh, device), after, mesh.keys.signing)
  } catch (error) {
    if (!(error instanceof HttpError) && !(error instanceof InvalidDeviceResponseError)) throw error
    throw new Problem(424, 'device_unreachable', `${device.id} did not answer: ${error.message}`)
  }
}
