import { createHash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  type Dirent,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join, relative } from 'node:path'
import { z } from 'zod'
import { manifest } from '../domain/mesh.ts'
import { processState, writeWhole } from './children.ts'
import { aptOptionsOf } from './packages.ts'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'
import type { NodePlan } from './topology.ts'

/**
 * Lists regular files below `root`, without following symbolic links. Leaves out a file that
 * disappears meanwhile.
 */
export function filesBelow(root: string): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(root, { withFileTypes: true })
  } catch {
    return []
  }
  return entries.flatMap((entry) => {
    const path = join(root, entry.name)
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })
}

/** Counts the bytes of each top-level directory, as `du` does. */
export function bytesByDirectory(root: string): Record<string, number> {
  const bytes: Record<string, number> = {}
  for (const file of filesBelow(root)) {
    const top = relative(root, file).split('/')[0]!
    try {
      bytes[top] = (bytes[top] ?? 0) + statSync(file).size
    } catch {
      // Ignores the error, because log rotation removed the file at this moment.
    }
  }
  return bytes
}

export function sha256Of(file: string): string {
  try {
    return digest(readFileSync(file))
  } catch {
    return 'missing'
  }
}

/** The beginning of a file: how many bytes it has, and their sha256. */
type Beginning = { bytes: number; sha256: string }

/** Reads the beginnings of the wanted files below `root`, by relative path. */
export function beginningsBelow(root: string, isWanted: (path: string) => boolean): Record<string, Beginning> {
  const files = filesBelow(root).map((file) => relative(root, file))
  return Object.fromEntries(
    files.filter(isWanted).map((path) => {
      const all = readFileSync(join(root, path))
      return [path, { bytes: all.length, sha256: digest(all) }]
    }),
  )
}

/** Lists the paths of files that are gone or begin differently. A file that grew is not lost. */
export function lostBelow(root: string, beginnings: Record<string, Beginning>): string[] {
  return Object.entries(beginnings).flatMap(([path, { bytes, sha256 }]) => {
    try {
      return digest(readFileSync(join(root, path)).subarray(0, bytes)) === sha256 ? [] : [path]
    } catch {
      return [path]
    }
  })
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

const directory = 'backup'
/** The fraction of each period during which a backup runs. */
const partOfPeriod = 0.5

/** Returns the id of the lab's process that backs up a node. */
function backupOn(node: string): string {
  return `backup-${node}`
}

/** Backs up a node repeatedly, as intended. The node announces each backup, so none is a fault. */
export async function startBackups(lab: Lab, node: string): Promise<void> {
  const root = nodeDirectory(lab, node)
  ownDirectory(lab, join(root, directory))
  const periodMs = lab.paceSeconds * 1_000
  await lab.children.start(backupOn(node), 'backup.ts', root, { periodMs, runMs: periodMs * partOfPeriod })
}

export async function endBackups(lab: Lab, node: string): Promise<void> {
  await lab.children.kill(backupOn(node))
  rmSync(join(nodeDirectory(lab, node), directory), { recursive: true, force: true })
}

/** Returns the start of the running backup; null if no backup runs. */
export function backupSince(lab: Lab, node: string): string | null {
  return isBackedUp(lab, node) ? (read(lab, node, `${directory}/running`)?.trim() ?? null) : null
}

/** Returns whether the node's backup process still runs. */
export function isBackedUp(lab: Lab, node: string): boolean {
  const child = lab.children.get(backupOn(node))
  return child !== undefined && processState(child.pid) === 'running'
}

/** Lists the node's tenants whose page has no identical copy in the backup. */
export function notBackedUp(lab: Lab, { id, shard }: NodePlan): string[] {
  const { tenants } = lab.topology.shards.find((each) => each.id === shard)!
  return tenants.filter((tenant) => {
    const page = read(lab, id, `tenants/${tenant}/index.html`)
    return page === null || read(lab, id, `${directory}/${tenant}.html`) !== page
  })
}

function read(lab: Lab, node: string, file: string): string | null {
  try {
    return readFileSync(join(nodeDirectory(lab, node), file), 'utf8')
  } catch {
    return null
  }
}

type LabDevice = {
  id: string
  /** The present or future address of the device's agent. */
  url: string
  /** The only directory on the device that `fs.*` and `git.*` may access. */
  root: string
  state: 'not enrolled' | 'running' | 'down'
}

const enrolment = z.object({ device: z.string(), root_public_key: z.string(), manifest })

export async function devicesOf(lab: Lab): Promise<LabDevice[]> {
  return await Promise.all(lab.topology.nodes.map(({ id }) => deviceOf(lab, id)))
}

/**
 * Sends the one-time token to the control plane, stores the response, and starts the agent. Throws
 * the control plane's error.
 */
export async function enrolNode(lab: Lab, id: string, apiUrl: string, token: string): Promise<LabDevice> {
  const response = await fetch(new URL('/mesh/enrolments', apiUrl), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
    signal: AbortSignal.timeout(10_000),
  })
  if (!response.ok)
    throw new Error(`the control plane answered ${response.status}: ${(await response.text()).slice(0, 300)}`)
  const { device, root_public_key, manifest: signed } = enrolment.parse(await response.json())
  if (device !== id) throw new Error(`the token is for ${device}, not for ${id}`)
  await lab.children.kill(agentId(id))
  const state = stateDirectory(lab, id)
  writeForNode(lab, join(state, 'root-key'), root_public_key)
  writeForNode(lab, join(state, 'manifest.json'), JSON.stringify(signed))
  await startAgent(lab, id)
  return await deviceOf(lab, id)
}

/** Starts the stopped agents of all enrolled nodes. */
export async function startAgents(lab: Lab): Promise<void> {
  const enrolled = lab.topology.nodes.filter(({ id }) => isEnrolled(lab, id) && !lab.children.get(agentId(id)))
  await Promise.all(enrolled.map(({ id }) => startAgent(lab, id)))
}

async function startAgent(lab: Lab, id: string): Promise<void> {
  const node = lab.topology.nodes.find((each) => each.id === id)!
  const aptOptions = node.role === 'web' ? aptOptionsOf(lab, node) : []
  const port = await portOf(lab, id)
  await lab.children.start(agentId(id), 'agent.ts', stateDirectory(lab, id), { port, aptOptions })
}

async function deviceOf(lab: Lab, id: string): Promise<LabDevice> {
  const child = lab.children.get(agentId(id))
  const isRunning = child !== undefined && processState(child.pid) === 'running'
  return {
    id,
    url: `http://127.0.0.1:${await portOf(lab, id)}`,
    root: nodeDirectory(lab, id),
    state: !isEnrolled(lab, id) ? 'not enrolled' : isRunning ? 'running' : 'down',
  }
}

function agentId(node: string): string {
  return `agent-${node}`
}

function isEnrolled(lab: Lab, id: string): boolean {
  return existsSync(join(lab.dir, 'agents', id, 'manifest.json'))
}

function stateDirectory(lab: Lab, id: string): string {
  const directory = join(lab.dir, 'agents', id)
  mkdirSync(directory, { recursive: true })
  chmodSync(join(lab.dir, 'agents'), 0o711)
  chmodSync(directory, 0o700)
  if (lab.account) chownSync(directory, lab.account.uid, lab.account.gid)
  return directory
}

/**
 * Returns the port of a node's agent. The port is chosen once, because the control plane stores the
 * device's address.
 */
async function portOf(lab: Lab, id: string): Promise<number> {
  const file = join(lab.dir, 'agents', `${id}.port`)
  if (existsSync(file)) return Number(readFileSync(file, 'utf8'))
  stateDirectory(lab, id)
  const port = await freePort()
  writeWhole(file, String(port))
  return port
}

/**
 * The lowest port for agents. Linux gives ports from 32768 to any connection, which could take the
 * agent's port first.
 */
const lowestPort = 10_240
const highestPort = 32_000

async function freePort(): Promise<number> {
  for (;;) {
    const port = lowestPort + Math.floor(Math.random() * (highestPort - lowestPort))
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)))
  })
}
