import { spawn } from 'node:child_process'
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const rootDir = fileURLToPath(new URL('..', import.meta.url))

/** Builds the pages where they are missing or outdated. True when it built something. */
export async function ensureWeb(root = rootDir): Promise<boolean> {
  if (isFresh(root)) return false
  await buildWeb(root, 'pipe')
  return true
}

/** Bundles `web/` into `web/dist`, replaced in one step: seconds. Throws its words. */
async function buildWeb(root: string, output: 'inherit' | 'pipe'): Promise<void> {
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js')
  const config = join(root, 'web', 'vite.config.ts')
  // Two may build at once, a start beside a test run: each in a separate folder.
  const dist = join(root, 'web', 'dist')
  const building = `${dist}-${process.pid}`
  await new Promise<void>((resolve, reject) => {
    const child = spawn(process.execPath, [vite, 'build', '--config', config, '--outDir', building, '--emptyOutDir'], {
      cwd: root,
      stdio: ['ignore', output, output],
      // A test run has NODE_ENV=test, for which the bundler would take libraries twice as large.
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

/** Only the compiler looks at `domain/`'s types: sources are `web/` and the lockfile. */
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

// `npm run build:web`, and the image.
if (import.meta.main) await buildWeb(rootDir, 'inherit')
