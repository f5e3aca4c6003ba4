import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from '@jest/globals'
import type { ApiOptions } from '../../api/app.ts'
import type { Db } from '../../db/connect.ts'
import { syncInventory } from '../../db/inventory/sync-inventory.ts'
import { append } from '../../db/log/append.ts'
import { agentActor } from '../../domain/event.ts'
import type { Tool, ToolContext } from '../../domain/tool.ts'
import type { Mesh } from '../../effects/devices/executor.ts'
import type { SigningKey } from '../../mesh/sign.ts'
import { tools } from '../../tools/registry.ts'
import { announced, approvedBySomebody, asked, consumed } from './announced.ts'
import { corePort, type TestApi, useApi } from './api.ts'
import { claimedIncident } from './database.ts'
import { eventually, freePort, temporaryDirectory } from './directory.ts'
import { answeredWith } from './events.ts'
import { type ScriptedDevice, scriptedDevice } from './scripted-device.ts'
import { scriptedPlatform } from './scripted-platform.ts'

export function newKey(id: string): SigningKey {
  return { id, key: generateKeyPairSync('ed25519').privateKey }
}

export type MeshApi = TestApi & { mesh: Mesh; variables: Record<string, string> }

/** The API with a mesh of its own, over the inventory of the scripted platform. */
export function useMeshApi(options: Partial<ApiOptions> = {}): MeshApi {
  const variables: Record<string, string> = {}
  const mesh: Mesh = {
    keys: { root: newKey('root'), signing: newKey('k-first'), next: null },
    variable: (name) => variables[name],
  }
  const api = useApi(() => ({ mesh, ...options })) as MeshApi
  Object.assign(api, { mesh, variables })
  beforeAll(async () => {
    await syncInventory(api.db, scriptedPlatform().inventoryState)
  })
  return api
}

const started: ScriptedDevice[] = []

export type DeviceSettings = Record<string, unknown>

/** A device as an admin makes it known and a person on it enrols it. */
export async function enrolled(api: MeshApi, id: string, settings: DeviceSettings = {}): Promise<ScriptedDevice> {
  const device = await scriptedDevice(id)
  started.push(device)
  const body = {
    url: device.url,
    mode: 'all',
    terms: { capabilities: [], roots: [{ path: '/srv', writable: true }] },
    ...settings,
  }
  const made = await api.put(`/devices/${id}`, { body })
  if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  const { body: minted } = await api.post(`/devices/${id}/enrolment`)
  const answer = await enrol(api, String(minted.token))
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
  device.manifest = answer.body.manifest as never
  return device
}

/** What the device's own command does with its token. */
export async function enrol(api: MeshApi, token: string, door = 'enrolments') {
  const response = await api.api.app.request(`/mesh/${door}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

export function stopDevicesAtEnd(): void {
  afterAll(async () => {
    for (const device of started) await device.stop().catch(() => {})
  })
}

let turns = 0
/** A call as a model proposed it: answers the place in the log where its run will announce it. */
export async function proposed(
  db: Db,
  tool: string,
  args: Record<string, unknown>,
  more: { secret?: boolean } = {},
): Promise<string> {
  const id = await claimedIncident(db)
  turns += 1
  const call = { id: `c${turns}_0`, tool, arguments: args, problem: null, ...more }
  await db.transaction().execute((trx) =>
    append(trx, id, 1, {
      kind: 'model_answered',
      actor: agentActor,
      turn: turns,
      detail: '',
      stepKey: `${id}.1:${turns}:model_answered:0`,
      metadata: answeredWith([call]),
    }),
  )
  return `${id}.1:${turns}:tool_started:0`
}

export function toolNamed(name: string): Tool {
  const tool = tools.get(name)
  if (!tool) throw new Error(`there is no tool ${name}`)
  return tool
}

/** What the registry's tool finds out about a call before it is judged. */
export async function prepared(api: MeshApi, name: string, args: Record<string, unknown>) {
  const stepKey = await proposed(api.db, name, args)
  const input = toolNamed(name).input.parse(args)
  return await toolNamed(name).prepare?.(input as never, contextOf(api, stepKey))
}

/** An approval that a person gave for exactly this, and that its run has used up. */
export async function usedApproval(
  api: MeshApi,
  incidentId: string,
  tool: string,
  identity: Record<string, unknown>,
): Promise<string> {
  const approvalId = await asked(api.db, incidentId, { tool, identity })
  await approvedBySomebody(api.db, approvalId)
  await consumed(api.db, incidentId, approvalId)
  return approvalId
}

/**
 * The registry's tool, run as a look that nobody was asked about, or under an approval that a
 * person gave for exactly this.
 */
export async function ran(api: MeshApi, name: string, args: Record<string, unknown>, how: 'unasked' | 'approved') {
  const incidentId = await claimedIncident(api.db)
  const { reason: _, ...identity } = args
  const approvalId = how === 'approved' ? await usedApproval(api, incidentId, name, identity) : null
  const effect = how === 'approved' ? 'write' : 'read'
  const stepKey = await announced(api.db, incidentId, name, identity, approvalId, effect)
  const answer = await toolNamed(name).run(toolNamed(name).input.parse(args) as never, contextOf(api, stepKey))
  return { answer, stepKey, incidentId }
}

function contextOf(api: MeshApi, stepKey: string): ToolContext {
  return { core: corePort(api), incidentId: stepKey.split('.')[0] ?? '', stepKey, ifMatch: null }
}

const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
const ending: (() => void)[] = []
afterAll(() => {
  for (const end of ending.splice(0)) end()
})

export type RealAgent = { id: string; state: string; pid: number }

/**
 * The agent itself, enrolled as a person would do it. `programs` are scripts that this agent alone
 * finds in /usr/local/sbin: it runs in a namespace of mounts of its own, since what an agent
 * executes comes from the machine's directories and no others. `overSystem`: a directory over
 * /usr/bin, which only root can put there.
 */
export async function realAgent(
  api: MeshApi,
  id: string,
  settings: DeviceSettings,
  programs: Record<string, string> = {},
  overSystem: string | null = null,
): Promise<RealAgent> {
  const directory = temporaryDirectory()
  const state = join(directory.path, 'state')
  mkdirSync(state)
  const address = `127.0.0.1:${await freePort()}`
  const body = { url: `http://${address}`, mode: 'all', terms: { capabilities: [], roots: [] }, ...settings }
  const made = await api.put(`/devices/${id}`, { body })
  if (made.status !== 200) throw new Error(JSON.stringify(made.body))
  const { body: minted } = await api.post(`/devices/${id}/enrolment`)
  const given = await enrol(api, String(minted.token))
  writeFileSync(join(state, 'manifest.json'), JSON.stringify(given.body.manifest))
  writeFileSync(join(state, 'root-key'), String(given.body.root_public_key))
  const command = [process.execPath, '--disable-warning=ExperimentalWarning', entry, 'mesh', 'agent']
  const words = [
    ...around(directory.path, programs),
    ...over(overSystem),
    ...command,
    '--state',
    state,
    '--listen',
    address,
  ]
  const child = spawn(words[0] ?? '', words.slice(1), { stdio: ['ignore', 'ignore', 'inherit'] })
  ending.push(() => {
    child.kill('SIGKILL')
    directory.remove()
  })
  await eventually(`the agent of ${id}`, async () => {
    if (hasEnded(child)) throw new Error(`the agent of ${id} ended with ${child.exitCode}`)
    const health = await fetch(`http://${address}/health`).catch(() => null)
    // Not somebody else's, who was faster to take the port.
    return health?.ok && ((await health.json()) as { device: string }).device === id
  })
  await api.post(`/devices/${id}/health`)
  return { id, state, pid: child.pid ?? 0 }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode !== null || signalCode !== null

function over(directory: string | null): string[] {
  if (directory === null) return []
  const mounted = `mount -t overlay overlay -o "lowerdir=$1:/usr/bin" /usr/bin && shift && exec "$@"`
  return ['unshare', '--mount', '--', '/bin/sh', '-c', mounted, 'sh', directory]
}

function around(directory: string, programs: Record<string, string>): string[] {
  const names = Object.keys(programs)
  if (names.length === 0) return []
  const programDirectory = join(directory, 'sbin')
  mkdirSync(programDirectory)
  for (const name of names) {
    writeFileSync(join(programDirectory, name), programs[name] ?? '')
    chmodSync(join(programDirectory, name), 0o755)
  }
  const mounted = `mount --bind "$1" /usr/local/sbin && shift && exec "$@"`
  const user = process.getuid?.() === 0 ? [] : ['--map-root-user']
  return ['unshare', ...user, '--mount', '--', '/bin/sh', '-c', mounted, 'sh', programDirectory]
}
