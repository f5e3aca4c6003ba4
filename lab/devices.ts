import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { z } from 'zod'
import { manifest } from '../domain/mesh.ts'
import { aptOptionsOf } from './packages.ts'
import { processState, writeWhole } from './process.ts'
import { type Lab, nodeDirectory, writeForNode } from './state.ts'

/** A node of the lab as a device of the mesh. */
export type LabDevice = {
  id: string
  /** Where its agent listens, or will listen once it is enrolled. */
  url: string
  /** What `fs.*` and `git.*` may reach on it. */
  root: string
  state: 'not enrolled' | 'running' | 'down'
}

const enrolment = z.object({ device: z.string(), root_public_key: z.string(), manifest })

export async function devicesOf(lab: Lab): Promise<LabDevice[]> {
  return await Promise.all(lab.topology.nodes.map(({ id }) => deviceOf(lab, id)))
}

/** Shows the one-time token to the control plane, keeps what it answers, and starts the agent. Throws what the control plane said. */
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

/** Starts the agents of all nodes that were enrolled once and do not run. */
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

/** Chosen once: the control plane knows the device by it. */
async function portOf(lab: Lab, id: string): Promise<number> {
  const file = join(lab.dir, 'agents', `${id}.port`)
  if (existsSync(file)) return Number(readFileSync(file, 'utf8'))
  stateDirectory(lab, id)
  const port = await freePort()
  writeWhole(file, String(port))
  return port
}

/** Below what Linux hands out by itself (32768 on): up there, any connection may take the port before the agent listens. */
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
