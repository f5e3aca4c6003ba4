import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type ServerType, serve } from '@hono/node-server'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { rootDir } from '../../bin/node24.js'
import { syncInventory } from '../../db/inventory/sync-inventory.ts'
import { asked } from '../support/announced.ts'
import { claimedIncident, openedIncident } from '../support/database.ts'
import { useMeshApi } from '../support/mesh-api.ts'
import { scriptedPlatform } from '../support/scripted-platform.ts'

const requirements = join(import.meta.dirname, 'requirements.txt')

/**
 * The pinned schemathesis, in a virtual environment under `.cache`; installed from the package
 * index where it is not there yet. `SCHEMATHESIS` names another one. Needs Python 3.10 or later
 * with venv (Debian: python3-venv).
 */
function schemathesis(): string {
  if (process.env.SCHEMATHESIS) return process.env.SCHEMATHESIS
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)
  const home = join(rootDir, '.cache', `schemathesis-${version}`)
  const program = join(home, 'bin', 'schemathesis')
  if (existsSync(join(home, 'complete'))) return program
  rmSync(home, { recursive: true, force: true })
  run('python3', ['-m', 'venv', home])
  run(join(home, 'bin', 'python'), [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '-r',
    requirements,
  ])
  run('touch', [join(home, 'complete')])
  return program
}

function run(command: string, args: string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'inherit', 'pipe'] })
  if (status === 0) return
  throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? stderr.slice(-2000)}`)
}

type Outcome = { status: number; output: string }

/** Runs it over a document's address and answers everything it said. */
async function check(documentUrl: string, args: readonly string[], token: string): Promise<Outcome> {
  const config = join(import.meta.dirname, 'schemathesis.toml')
  const child = spawn(schemathesis(), ['--config-file', config, 'run', documentUrl, ...args], {
    cwd: join(rootDir, '.cache'),
    env: { ...process.env, NIGHTSHIFT_TOKEN: token, NO_COLOR: '1', PYTHONUNBUFFERED: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  const hear = (chunk: Buffer) => {
    output += chunk.toString()
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  return await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (status) => resolve({ status: status ?? -1, output }))
  })
}

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
 * Each request from another address, the first try at its approval, and the first with its
 * Idempotency-Key: else the limits of tries would answer after twenty of them, and a key that was
 * used before with its own 422.
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

/**
 * The live stream has no end: its first two blocks are enough, and half a second where nothing
 * happens.
 */
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

test('every operation answers as its document says, whatever is sent', async () => {
  const more = process.env.CONTRACT_ARGS?.split(' ') ?? []
  const args = ['--checks', 'all', '--max-examples', examples, '--seed', seed, '--workers', '1', ...more]
  const { status, output } = await check(`${url}/openapi.json`, args, api.tokens.admin)
  process.stdout.write(output)
  expect(status).toBe(0)
})
