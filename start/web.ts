import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { labClient } from '../lab/client.ts'

export const rootDir = fileURLToPath(new URL('..', import.meta.url))

/** Builds the pages where they are missing or older than what they are made of. True when something was built. */
export async function ensureWeb(root = rootDir): Promise<boolean> {
  if (isFresh(root)) return false
  await buildWeb(root, 'pipe')
  return true
}

/** Bundles `web/` into `web/dist`, which is replaced in one step: a second or two. Throws with what the bundler said. */
export async function buildWeb(root: string, output: 'inherit' | 'pipe'): Promise<void> {
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js')
  const config = join(root, 'web', 'vite.config.ts')
  // Two may build at once, a start beside a test run: each in a separate folder.
  const dist = join(root, 'web', 'dist')
  const building = `${dist}-${process.pid}`
  await new Promise<void>((resolve, reject) => {
    const child = spawn(process.execPath, [vite, 'build', '--config', config, '--outDir', building, '--emptyOutDir'], {
      cwd: root,
      stdio: ['ignore', output, output],
      // A test run says NODE_ENV=test, and the bundler would then take the twice as large libraries for developers.
      env: { ...process.env, NODE_ENV: 'production' },
    })
    let said = ''
    const hear = (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_000)
    }
    child.stdout?.on('data', hear)
    child.stderr?.on('data', hear)
    child.once('error', reject)
    child.once('close', (code) => (code === 0 ? resolve() : reject(new Error(`The pages were not built:\n${said}`))))
  }).catch((error) => {
    rmSync(building, { recursive: true, force: true })
    throw error
  })
  rmSync(dist, { recursive: true, force: true })
  renameSync(building, dist)
}

/** Types of `domain/` are looked at by the compiler alone: what they are made of is `web/` and the lockfile. */
function isFresh(root: string): boolean {
  const built = changedAt(join(root, 'web', 'dist', 'index.html'))
  return (
    built !== null &&
    built > (changedAt(join(root, 'package-lock.json')) ?? 0) &&
    built > newestBelow(join(root, 'web'))
  )
}

function newestBelow(dir: string): number {
  let newest = 0
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    if (entry.name.startsWith('dist')) continue
    const path = join(dir, entry.name)
    newest = Math.max(newest, entry.isDirectory() ? newestBelow(path) : (changedAt(path) ?? 0))
  }
  return newest
}

function changedAt(file: string): number | null {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? null
}

type Lab = Pick<ReturnType<typeof labClient>, 'devices' | 'enrol'>

/**
 * Makes each node of the lab a device of the mesh, as an admin does it for a real machine: made known, a one-time token, enrolled.
 * Those that both sides know as enrolled are left alone: the lab keeps its files when the database behind the core API was removed, and its
 * word alone would leave devices that nobody can ask. Answers how many were enrolled now; throws what the core API or the lab said.
 */
export async function enrolLab(apiUrl: string, adminToken: string, lab: Lab): Promise<number> {
  const known = await enrolledDevices(apiUrl, adminToken)
  const waiting = (await lab.devices()).filter(({ id, state }) => state === 'not enrolled' || !known.has(id))
  for (const { id, url, root } of waiting) {
    // A simple one, which every machine has: routes without any are not what somebody wants.
    const checks = [{ path: `${root}/site/routes.json`, argv: ['grep', '-c', 'routes', '{path}'] }]
    const terms = { capabilities: [], roots: [{ path: root, writable: true }], checks }
    await whenKnown(() => ask(apiUrl, adminToken, 'PUT', `/devices/${id}`, { url, mode: 'all', terms }))
    const { token } = (await ask(apiUrl, adminToken, 'POST', `/devices/${id}/enrolment`, {})) as { token: string }
    await lab.enrol(id, apiUrl, token)
    await ask(apiUrl, adminToken, 'POST', `/devices/${id}/health`, {})
  }
  return waiting.length
}

/** What the core API has enrolled; a device that an admin revoked is known, and stays revoked. */
async function enrolledDevices(apiUrl: string, adminToken: string): Promise<Set<string>> {
  const { items } = (await ask(apiUrl, adminToken, 'GET', '/devices')) as {
    items: { id: string; enrolledAt: string | null; revokedAt: string | null }[]
  }
  return new Set(items.filter((each) => each.enrolledAt !== null || each.revokedAt !== null).map(({ id }) => id))
}

const knownWithinMs = 20_000
const tryAgainMs = 250

/** A core API that has just started may not have asked the lab yet what there is. */
async function whenKnown<T>(work: () => Promise<T>): Promise<T> {
  const until = Date.now() + knownWithinMs
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > until || !(error instanceof Error && error.message.includes('NO_RESOURCE'))) throw error
      await sleep(tryAgainMs)
    }
  }
}

async function ask(apiUrl: string, token: string, method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(`${apiUrl}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await response.text()
  if (!response.ok)
    throw new Error(`the core API answered ${response.status} to ${method} ${path}: ${text.slice(0, 300)}`)
  return JSON.parse(text)
}

type MeshKeyFiles = { MESH_ROOT_KEY_FILE: string; MESH_SIGNING_KEY_FILE: string }

/** The keys of an embedded mesh, made at the first start and kept: devices have pinned the root key. Only their owner reads them. */
export function ensureMeshKeys(stateDir: string): MeshKeyFiles {
  const dir = join(stateDir, 'mesh')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  chmodSync(dir, 0o700)
  return {
    MESH_ROOT_KEY_FILE: ensureKey(join(dir, 'root.pem')),
    MESH_SIGNING_KEY_FILE: ensureKey(join(dir, 'signing.pem')),
  }
}

function ensureKey(file: string): string {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' })
  try {
    writeFileSync(file, pem, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return file
}

// `npm run build:web`, and the image.
if (import.meta.main) await buildWeb(rootDir, 'inherit')
