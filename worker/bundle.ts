import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = new URL('../', import.meta.url)
const workflows = new URL('workflows/', root)

/** Path of the bundled workflows in a package, which ships them instead of the bundler. */
export const shippedBundle = 'workflows/bundle.js'

/**
 * Returns the bundled workflows. Bundling takes over a second, so the bundle is cached in `.cache`
 * under a digest of its sources. If `.cache` is not writable, each start bundles again.
 */
export async function workflowBundle(): Promise<{ code: string }> {
  const shipped = new URL(shippedBundle, root)
  if (existsSync(shipped)) return { code: readFileSync(shipped, 'utf8') }
  const file = new URL(`.cache/workflows-${digestOfSources()}.js`, root)
  try {
    return { code: readFileSync(file, 'utf8') }
  } catch {
    const { code } = await bundle()
    keep(file, code)
    return { code }
  }
}

async function bundle(): Promise<{ code: string }> {
  // Loads the bundler only here, because it is as large as the worker and is only needed once.
  const { bundleWorkflowCode, DefaultLogger } = await import('@temporalio/worker')
  return await bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('index.ts', workflows)),
    logger: new DefaultLogger('WARN'),
  })
}

function digestOfSources(): string {
  const hash = createHash('sha256')
  for (const name of readdirSync(workflows).sort()) hash.update(name).update(readFileSync(new URL(name, workflows)))
  for (const name of ['workflow', 'worker', 'common'])
    hash.update(readFileSync(new URL(`node_modules/@temporalio/${name}/package.json`, root)))
  return hash.digest('hex').slice(0, 16)
}

function keep(file: URL, code: string): void {
  try {
    mkdirSync(new URL('.', file), { recursive: true })
    // Renames a complete file into place, because two processes may write the bundle at once.
    const own = new URL(`${file.href}.${randomBytes(4).toString('hex')}`)
    writeFileSync(own, code, { mode: 0o644 })
    renameSync(own, file)
  } catch {
    // Ignores the failure, because the next start bundles again.
  }
}
