import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { getStateDir } from '../connection.ts'
import { CommandFailed } from '../exit-codes.ts'
import { isCheckout, startLine } from '../start-line.ts'
import type { Readers } from './env-file.ts'

/** Where the settings of a site are kept, and what of it the start makes by itself. */
export type SiteFiles = {
  envFile: string
  /** Settings of the API alone: the keys of the mesh. */
  apiEnvFile: string
  /** `npm start -- --site` brings PostgreSQL, Temporal, tokens and keys unless others are named. */
  isCheckout: boolean
  readers: Readers
  startLine: string
}

const packaged = '/etc/nightshift/nightshift.env'

/**
 * The flag's place, else this installation's. Throws CommandFailed where nothing could be written
 * there.
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

/** Throws CommandFailed, before any question, where file or folder is closed to this user. */
export function checkWritable({ envFile, isCheckout: isOwn }: SiteFiles): void {
  const folder = dirname(envFile)
  // A checkout's site may have no folder yet.
  const nearest = isOwn && !existsSync(folder) ? dirname(folder) : folder
  const remedy = 'Run it as root (sudo), or name another file with --settings.'
  if (!existsSync(nearest))
    throw new CommandFailed(
      'error',
      `The folder ${nearest} is not there. Make it, or ${remedy.charAt(0).toLowerCase()}${remedy.slice(1)}`,
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

/** Finds the user of the package's units; null where this machine has none. */
function accountOfServices(): Readers {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((each) => each.startsWith('nightshift:'))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid === undefined || gid === undefined ? null : { uid: Number(uid), gid: Number(gid) }
}
