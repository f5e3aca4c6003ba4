import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Capability, CapabilityAnswer, Grant, Manifest, MeshHealth } from '../../domain/mesh.ts'
import type { AgentOptions } from '../../mesh/agent/start.ts'
import { argsDigest, type SigningKey, signed, writePublicKey } from '../../mesh/sign.ts'
import { compileCache, eventually, temporaryDirectory } from './directory.ts'

const entry = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))

const agentProcess = fileURLToPath(new URL('./agent-process.ts', import.meta.url))

function optionsOf({ manifestFile, state }: { manifestFile: string; state: string }): AgentOptions {
  const address = { host: '127.0.0.1', port: 0 }
  const rootKeyFile = join(state, 'root-key')
  return { manifestFile, state, rootKeyFile, address, tls: null, acceptLostJournal: false, version: 'test' }
}

/**
 * A control plane's keys: the root key that signs manifests, and the one that signs requests and
 * grants.
 */
export function keys(): { root: SigningKey; control: SigningKey; rootPublic: KeyObject; controlPublic: KeyObject } {
  const root = generateKeyPairSync('ed25519')
  const control = generateKeyPairSync('ed25519')
  return {
    root: { id: 'root-1', key: root.privateKey },
    control: { id: 'cp-1', key: control.privateKey },
    rootPublic: root.publicKey,
    controlPublic: control.publicKey,
  }
}
export type Keys = ReturnType<typeof keys>

export const inSeconds = (seconds: number, from = Date.now()) => new Date(from + seconds * 1000).toISOString()

export function aManifest(own: Keys, changes: Record<string, unknown> = {}): Manifest {
  const unsigned = {
    id: 'manifest_web-1_v1',
    device: 'web-1',
    mode: 'user',
    capabilities: [],
    roots: [],
    keys: [{ id: own.control.id, public_key: writePublicKey(own.controlPublic), not_after: null }],
    issued_at: inSeconds(-60),
    expires_at: inSeconds(3600),
    ...changes,
  }
  return signed(unsigned, own.root) as unknown as Manifest
}

export const hex = (bytes: number) => randomBytes(bytes).toString('hex')
export const newRequestId = () => `req_${hex(12)}`

export function aRequest(
  own: Keys,
  capability: Capability,
  args: Record<string, unknown>,
  changes: Record<string, unknown> = {},
) {
  const unsigned = {
    request_id: newRequestId(),
    nonce: randomBytes(16).toString('base64'),
    issued_at: inSeconds(0),
    deadline: inSeconds(60),
    device: 'web-1',
    capability,
    args,
    idempotency_key: `key-${hex(8)}`,
    grant: null,
    ...changes,
  }
  return signed(unsigned, own.control)
}

/** What a reader of this path sees. */
export function aLeave(read: string, by: SigningKey, changes: Record<string, unknown> = {}): { authorization: string } {
  const unsigned = {
    read,
    nonce: randomBytes(16).toString('base64'),
    issued_at: inSeconds(0),
    device: 'web-1',
    ...changes,
  }
  return { authorization: `Mesh ${Buffer.from(JSON.stringify(signed(unsigned, by))).toString('base64url')}` }
}

/** A grant for exactly these arguments, unless something is changed about it. */
export function aGrant(
  own: Keys,
  about: { request_id: string; capability: Capability; args: Record<string, unknown> },
  changes: Record<string, unknown> = {},
): Grant {
  const unsigned = {
    id: `grt_${hex(12)}`,
    device: 'web-1',
    request_id: about.request_id,
    capability: about.capability,
    args_digest: argsDigest(about.args),
    authority: 'apr_1',
    issued_at: inSeconds(0),
    expires_at: inSeconds(120),
    ...changes,
  }
  return signed(unsigned, own.control) as unknown as Grant
}

/** A request with a grant that allows it. */
export function aGranted(
  own: Keys,
  capability: Capability,
  args: Record<string, unknown>,
  changes: Record<string, unknown> = {},
) {
  const request_id = newRequestId()
  const grant = aGrant(own, { request_id, capability, args })
  return aRequest(own, capability, args, { request_id, grant, ...changes })
}

export type Answered = { status: number; answer: CapabilityAnswer }

/** An agent as a process of its own, with a client that signs. */
export type Running = Awaited<ReturnType<typeof startAgent>>

export async function startAgent(
  own: Keys,
  options: {
    manifest?: Manifest | string
    state?: string
    args?: string[]
    dockerHost?: string
    uid?: number
    mortal?: boolean
    /** Words that the agent is started behind. */
    behind?: string[]
  } = {},
) {
  const directory = options.state ? null : temporaryDirectory()
  const state = options.state ?? join(directory?.path ?? '', 'state')
  if (!existsSync(state)) {
    mkdirSync(state, { recursive: true })
    chmodSync(state, 0o777)
  }
  const manifestFile = join(state, 'manifest.json')
  if (options.manifest !== undefined || !existsSync(manifestFile)) {
    const text =
      typeof options.manifest === 'string' ? options.manifest : JSON.stringify(options.manifest ?? aManifest(own))
    writeFileSync(manifestFile, text)
  }
  const rootKey = join(state, 'root-key')
  if (!existsSync(rootKey)) writeFileSync(rootKey, writePublicKey(own.rootPublic))

  let child: ChildProcess
  let url = ''
  let said = ''

  async function up(more: string[] = []): Promise<void> {
    said = ''
    const command = options.mortal
      ? [agentProcess, JSON.stringify(optionsOf({ manifestFile, state }))]
      : options.uid
        ? [
            agentProcess,
            JSON.stringify({ ...optionsOf({ manifestFile, state }), dockerHost: options.dockerHost }),
            String(options.uid),
          ]
        : [entry, 'mesh', 'agent', '--manifest', manifestFile, '--state', state, '--listen', '127.0.0.1:0']
    const [program = '', ...before] = [...(options.behind ?? []), process.execPath]
    child = spawn(
      program,
      [
        ...before,
        '--disable-warning=ExperimentalWarning',
        ...command,
        ...(options.dockerHost && !options.uid ? ['--docker-host', options.dockerHost] : []),
        ...(options.args ?? []),
        ...more,
      ],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH: process.env.PATH ?? '', HOME: '/tmp', NODE_COMPILE_CACHE: compileCache },
      },
    )
    child.stderr?.on('data', (chunk) => {
      said += chunk
    })
    url = await eventually('the agent to listen', () => {
      if (child.exitCode !== null) throw new Error(`the agent ended with ${child.exitCode}: ${said}`)
      return /Listening on (\S+):/.exec(said)?.[1]
    })
  }

  function gone(): Promise<unknown> {
    return child.exitCode !== null || child.signalCode !== null
      ? Promise.resolve()
      : new Promise((resolve) => child.once('exit', resolve))
  }

  async function kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const ended = gone()
    child.kill(signal)
    await ended
  }

  async function post(body: unknown): Promise<Answered> {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    const response = await fetch(`${url}/capability`, { method: 'POST', body: text })
    return { status: response.status, answer: (await response.json()) as CapabilityAnswer }
  }

  await up()
  return {
    state,
    manifestFile,
    up,
    kill,
    gone,
    post,
    get url() {
      return url
    },
    get pid() {
      return child.pid as number
    },
    get said() {
      return said
    },
    call: (capability: Capability, args: Record<string, unknown>, changes: Record<string, unknown> = {}) =>
      post(aRequest(own, capability, args, changes)),
    granted: (capability: Capability, args: Record<string, unknown>, changes: Record<string, unknown> = {}) =>
      post(aGranted(own, capability, args, changes)),
    health: async () => (await (await fetch(`${url}/health`)).json()) as MeshHealth,
    hangUp: () => child.kill('SIGHUP'),
    residentMb: () =>
      Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024,
    /** Ends it, with all it has written. */
    async stop() {
      await kill()
      directory?.remove()
    },
    remove: () => directory?.remove(),
  }
}
