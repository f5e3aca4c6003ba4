import { spawn } from 'node:child_process'
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const rootDir = fileURLToPath(new URL('..', import.meta.url))

/** Builds the pages if they are missing or outdated. Returns true if it built them. */
export async function ensureWeb(root = rootDir): Promise<boolean> {
  if (isFresh(root)) return false
  await buildWeb(root, 'pipe')
  return true
}

/** Bundles `web/` into a new folder, which then replaces `web/dist`. Throws the bundler's error. */
async function buildWeb(root: string, output: 'inherit' | 'pipe'): Promise<void> {
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js')
  const config = join(root, 'web', 'vite.config.ts')
  // Builds in a separate folder, because two builds may run at once, for example a start and a test
  // run.
  const dist = join(root, 'web', 'dist')
  const building = `${dist}-${process.pid}`
  await new Promise<void>((resolve, reject) => {
    const child = spawn(process.execPath, [vite, 'build', '--config', config, '--outDir', building, '--emptyOutDir'], {
      cwd: root,
      stdio: ['ignore', output, output],
      // Sets NODE_ENV: the NODE_ENV=test of a test run would bundle libraries twice as large.
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

/**
 * Returns whether the built pages are newer than everything that the bundler reads: `web/`,
 * `domain/` (whose sentences the pages show), the version, and the locked libraries.
 */
function isFresh(root: string): boolean {
  const built = changedAt(join(root, 'web', 'dist', 'index.html'))
  const files = ['package.json', 'package-lock.json'].map((name) => changedAt(join(root, name)) ?? 0)
  const folders = ['web', 'domain'].map((name) => newestBelow(join(root, name)))
  return built !== null && built > Math.max(...files, ...folders)
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

// Builds for `npm run build:web`, and for the image.
if (import.meta.main) await buildWeb(rootDir, 'inherit')
