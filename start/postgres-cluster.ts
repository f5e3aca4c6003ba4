import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { type Account, canEnter } from './account.ts'
import { elsewhere } from './elsewhere.ts'

const run = promisify(execFile)

/** Who owns everything in it. */
export const postgresUser = 'postgres'

/** Creates the cluster of a directory where there is none: UTF8, locale C, a random password. Answers where its data is. */
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
        `${dir} holds a database but not its password file. Put ${join(dir, 'password')} back, or remove ${dir} to start again.`,
      )
    }
    return lstatSync(link).isSymbolicLink() ? resolve(dir, readFileSync(join(dir, 'location'), 'utf8').trim()) : link
  }

  progress('creating the database cluster')
  const parent = account && !canEnter(dir, account) ? elsewhere(dirname(dir)) : dir
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
  // Only a complete cluster gets the name that the next start looks for.
  rmSync(dataDir, { recursive: true, force: true })
  renameSync(draft, dataDir)
  if (parent !== dir) {
    rmSync(link, { force: true })
    symlinkSync(dataDir, link)
    writeFileSync(join(dir, 'location'), `${dataDir}\n`)
  }
  return dataDir
}
