import type { AddressInfo } from 'node:net'
import { type ServerType, serve } from '@hono/node-server'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { syncInventory } from '../../db/inventory.ts'
import { asked } from '../api/announced.ts'
import { scriptedPlatform } from '../api/scripted-platform.ts'
import { useMeshApi } from '../mesh/control/mesh-api.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { check } from './schemathesis.ts'

const platform = scriptedPlatform()
const api = useMeshApi({ platform })
let server: ServerType
let url: string

const anna = { role: 'approver', maxRisk: 'high', incidentTypes: null, disabled: false }

/** Something of everything, so that requests meet rows and not only 404. */
beforeAll(async () => {
  await syncInventory(api.db, platform.inventoryState)
  await openedIncident(api.db)
  await api.put('/operators/anna', { body: anna })
  await asked(api.db, await claimedIncident(api.db))
  await new Promise<void>((resolve) => {
    server = serve({ fetch: fromElsewhere, port: 0, hostname: '127.0.0.1' }, () => resolve())
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())

let requests = 0
const ended = { done: true, value: undefined } as const

/**
 * Each request from another address, the first try at its approval, and the first with its Idempotency-Key: else the limits of
 * tries would answer after twenty of them, and a key that was used before with its own 422.
 */
async function fromElsewhere(request: Request) {
  requests += 1
  if (/\/(decision|token)$/.test(new URL(request.url).pathname)) await api.owner.deleteFrom('attempt').execute()
  if (request.headers.has('idempotency-key')) await api.owner.deleteFrom('idempotency').execute()
  const remoteAddress = `10.${(requests >> 16) & 255}.${(requests >> 8) & 255}.${requests & 255}`
  const incoming = { socket: { remoteAddress, remotePort: 1, remoteFamily: 'IPv4' } }
  const answer = await api.api.app.fetch(request, { incoming })
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream')
  return isStream ? beginningOf(answer) : answer
}

/** The live stream has no end: its first two blocks are enough, and half a second where nothing happens. */
function beginningOf(answer: Response): Response {
  const reader = answer.body!.getReader()
  const quiet = () => new Promise<{ done: true; value?: never }>((resolve) => setTimeout(resolve, 500, { done: true }))
  let blocks = 0
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = blocks < 2 ? await Promise.race([reader.read(), quiet()]) : ended
      blocks += 1
      if (!done && value) return controller.enqueue(value)
      controller.close()
      await reader.cancel()
    },
    cancel: () => reader.cancel(),
  })
  return new Response(body, { status: answer.status, headers: answer.headers })
}

/** Requests for each operation and phase: `CONTRACT_EXAMPLES=200` looks longer. */
const examples = process.env.CONTRACT_EXAMPLES ?? '15'
const seed = process.env.CONTRACT_SEED ?? '1'

test('every operation answers as the document says, whatever is sent', async () => {
  const more = process.env.CONTRACT_ARGS?.split(' ') ?? []
  const args = ['--checks', 'all', '--max-examples', examples, '--seed', seed, '--workers', '1', ...more]
  const { status, output } = await check(`${url}/openapi.json`, args, api.tokens.admin)
  process.stdout.write(output)
  expect(status).toBe(0)
})
