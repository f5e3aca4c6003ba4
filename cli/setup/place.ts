import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { getStateDir } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { isCheckout, startLine } from '../start-line.ts'
import type { Readers } from './env-file.ts'

/** The place of a site's settings, and whether `start` makes the missing parts by itself. */
export type SiteFiles = {
  envFile: string
  /** The file of settings that only the API reads: the keys of the mesh. */
  apiEnvFile: string
  /**
   * True for a checkout: `npm start -- --site` provides PostgreSQL, Temporal, tokens and keys if no
   * setting names them.
   */
  isCheckout: boolean
  readers: Readers
  startLine: string
}

const packaged = '/etc/nightshift/nightshift.env'

/**
 * Returns the place of the settings that the flag names, or else of this installation. Throws
 * CommandFailed in a container, whose settings come from outside.
 */
export function findPlace(named: string | undefined): SiteFiles {
  const isOwn = named === undefined && isCheckout()
  const envFile = resolve(named ?? (isOwn ? join(getStateDir('site'), 'nightshift.env') : packaged))
  const place = {
    envFile,
    apiEnvFile: join(dirname(envFile), 'api.env'),
    isCheckout: isOwn,
    readers: isOwn ? null : accountOfServices(),
    startLine: isOwn ? 'npm start -- --site' : startLine().replace(/^npm start$/, 'npm start -- --site'),
  }
  if (process.env.NIGHTSHIFT_COMMAND && named === undefined)
    throw new CommandFailed(
      'usage',
      'In a container the settings come from outside: edit .env (docs/how-to/production.md), or name a file with --settings. "nightshift setup temporal" works here.',
    )
  return place
}

/** Throws CommandFailed, before any question, if this user cannot write the file or directory. */
export function checkWritable({ envFile, isCheckout: isOwn }: SiteFiles): void {
  const folder = dirname(envFile)
  // The site of a checkout may have no directory yet.
  const nearest = isOwn && !existsSync(folder) ? dirname(folder) : folder
  const remedy = 'Run the command as root (sudo), or name another file with --settings.'
  if (!existsSync(nearest))
    throw new CommandFailed(
      'error',
      `The folder ${nearest} does not exist. Create it, or ${remedy.charAt(0).toLowerCase()}${remedy.slice(1)}`,
    )
  if (!statSync(nearest).isDirectory())
    throw new CommandFailed('error', `${nearest} is not a folder. Name another file with --settings.`)
  for (const path of [nearest, ...(existsSync(envFile) ? [envFile] : [])]) {
    try {
      accessSync(path, constants.W_OK | constants.R_OK)
    } catch {
      throw new CommandFailed(
        'error',
        `${path} cannot be written by this user: nothing was asked or changed. ${remedy}`,
      )
    }
  }
}

/** Finds the user as which the package's services run. Null if this machine has no such user. */
function accountOfServices(): Readers {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith('nightshift:'))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) }
}
