import { type ChildProcess, spawn } from 'node:child_process'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAdaptorServer } from '@hono/node-server'
import { afterAll } from '@jest/globals'
import pino from 'pino'
import { openAgentDoor } from '../../api/agent-door.ts'
import { createApi } from '../../api/app.ts'
import { type DeviceConnections, openConnections } from '../../effects/devices/connections.ts'
import { compileCache, eventually, temporaryDirectory } from './directory.ts'
import { type DeviceSettings, type MeshApi, newKey } from './mesh-api.ts'

const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

/** One process of the API as agents see it: a server with the door, and its own connections. */
export type Door = {
  url: string
  connections: DeviceConnections
  server: Server
  /** The API behind it asks devices over the connections of this door. */
  api: ReturnType<typeof createApi>
  stop(): Promise<void>
}

const doors: Door[] = []
const agents: CallingAgent[] = []
afterAll(async () => {
  for (const agent of agents) await agent.stop()
  for (const door of doors) await door.stop()
})

/**
 * Opens a door over the test's database; each one is another process of the API, as far as
 * connections go.
 */
export async function openDoor(test: MeshApi, name = 'api-1', port = 0): Promise<Door> {
  const closing = new AbortController()
  const log = pino({ level: 'silent' })
  const connections = openConnections({ db: test.db, log, keys: test.mesh.keys, name })
  const mesh = { ...test.mesh, connections }
  const api = createApi({ db: test.db, mesh, log, closing: closing.signal })
  const server = createAdaptorServer({ fetch: api.app.fetch }) as Server
  openAgentDoor(server, api.deps)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  let isStopped = false
  const door: Door = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    server,
    api,
    async stop() {
      if (isStopped) return
      isStopped = true
      closing.abort()
      await connections.stop()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  doors.push(door)
  return door
}

/** The test's own API asks over this door from now on. */
export function askThrough(test: MeshApi, door: Door): void {
  test.mesh.connections = door.connections
}

/** A device that calls out, made known; answers the token that enrols it. */
export async function knownToCallOut(test: MeshApi, id: string, settings: DeviceSettings = {}): Promise<string> {
  const body = { url: null, mode: 'user', terms: { capabilities: [], roots: [] }, ...settings }
  const made = await test.put(`/devices/${id}`, { body })
  if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  return String((await test.post(`/devices/${id}/enrolment`)).body.token)
}

export type CallingAgent = {
  state: string
  pid(): number
  said(): string
  /** Starts it, with these words more. */
  up(words?: string[]): Promise<void>
  kill(signal?: NodeJS.Signals): Promise<void>
  stop(): Promise<void>
}

/** The agent itself, as the line does it that enrolment prints. It is started by `up`. */
export function callingAgent(words: string[] = []): CallingAgent {
  const directory = temporaryDirectory()
  const state = join(directory.path, 'state')
  let child: ChildProcess | null = null
  let said = ''
  const gone = async (one: ChildProcess) => {
    if (one.exitCode === null && one.signalCode === null) await new Promise((resolve) => one.once('exit', resolve))
  }
  const agent: CallingAgent = {
    state,
    pid: () => child?.pid ?? 0,
    said: () => said,
    async up(more = []) {
      said = ''
      const all = ['--disable-warning=ExperimentalWarning', entry, 'agent', '--state', state, ...words, ...more]
      const one = spawn(process.execPath, all, {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH: process.env.PATH ?? '', HOME: '/tmp', NODE_COMPILE_CACHE: compileCache },
      })
      child = one
      one.stderr.on('data', (chunk) => {
        said += chunk
      })
      await eventually('the agent to call out', () => {
        if (one.exitCode !== null) throw new Error(`the agent ended with ${one.exitCode}: ${said}`)
        return /Calling out to/.test(said)
      })
    },
    async kill(signal = 'SIGKILL') {
      if (!child) return
      child.kill(signal)
      await gone(child)
    },
    async stop() {
      await agent.kill()
      directory.remove()
    },
  }
  agents.push(agent)
  return agent
}

export { newKey }
