import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'

const rootDir = join(import.meta.dirname, '..', '..')

/**
 * The bundle of the workflows as the worker makes it. Bundling takes a second, so the code is kept in the temp directory
 * under a digest of all it is made from: test files and later runs read it from there.
 */
export async function workflowBundle(): Promise<{ code: string }> {
  const file = join(tmpdir(), `nightshift-workflows-${userInfo().username}-${digestOfSources()}.js`)
  try {
    return { code: readFileSync(file, 'utf8') }
  } catch {
    const { bundleWorkflows } = await import('../../worker/workers.ts')
    const { code } = await bundleWorkflows()
    // Two test files may get here at once: each renames a whole file into place.
    const own = `${file}.${randomBytes(4).toString('hex')}`
    writeFileSync(own, code, { mode: 0o600 })
    renameSync(own, file)
    return { code }
  }
}

function digestOfSources(): string {
  const hash = createHash('sha256')
  const dir = join(rootDir, 'workflows')
  for (const name of readdirSync(dir).sort()) hash.update(name).update(readFileSync(join(dir, name)))
  hash.update(readFileSync(join(rootDir, 'worker', 'workers.ts')))
  hash.update(readFileSync(join(rootDir, 'node_modules', '@temporalio', 'workflow', 'package.json')))
  return hash.digest('hex').slice(0, 16)
}
