import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { version } from '../domain/version.ts'
import { type Environment, setting } from './environment.ts'
import { type LocalRun, readRunFile } from './run-file.ts'

/**
 * The purpose of a state folder. A lab and a site never share a folder, because a host, source or
 * incident of the lab would become part of the site.
 */
export type Purpose = 'lab' | 'site'

type Kept = { purpose: Purpose; version: string }

/**
 * Returns the purpose of a start: a lab if one is requested and the environment replaces no part of
 * it, otherwise a site.
 */
export function purposeOf(env: Environment, lab: boolean): Purpose {
  const isReplaced = ['CORE_API_URL', 'PLATFORM_URL', 'PROXMOX_URL'].some((name) => setting(env, name) !== undefined)
  return lab && !isReplaced ? 'lab' : 'site'
}

/**
 * Returns the state folder of a checkout for this purpose. A site that an old version began in the
 * lab's folder stays there.
 */
export function stateDirFor(rootDir: string, purpose: Purpose): string {
  const own = join(rootDir, '.nightshift')
  const site = join(rootDir, '.nightshift-site')
  if (purpose === 'lab') return own
  return !existsSync(site) && heldIn(own) === 'site' ? own : site
}

/** Returns the state folder of this checkout that was used last. Without one, the lab's folder. */
export function lastStateDir(rootDir: string): string {
  const places = [stateDirFor(rootDir, 'lab'), stateDirFor(rootDir, 'site')]
  const usedAt = (dir: string) => statSync(join(dir, 'run.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return places.sort((one, other) => usedAt(other) - usedAt(one))[0] as string
}

/**
 * Returns whether the lab's machines are beside the state folder, or at the place that the file
 * `lab-location` names.
 */
const hasLabBeside = (stateDir: string) => existsSync(`${stateDir}-lab`) || existsSync(join(stateDir, 'lab-location'))

/**
 * Returns the purpose for which a state folder was used. An older version may have used one folder
 * for both purposes. Null if no start used the folder.
 */
function heldIn(stateDir: string): Purpose | 'both' | null {
  const kept = readKept(stateDir)
  if (kept) return kept.purpose
  const run = readRunFile(stateDir)
  if (!run) return null
  if (run.labUrl !== null) return 'lab'
  return hasLabBeside(stateDir) ? 'both' : 'site'
}

/**
 * Records the purpose in the state folder. Throws, before any change, if the folder was used for
 * the other purpose or by a newer version. The message explains how to continue.
 */
export function claimState(stateDir: string, purpose: Purpose): void {
  const kept = readKept(stateDir)
  if (kept && isNewer(kept.version, version))
    throw new Error(
      `${stateDir} was last used by Nightshift ${kept.version}, and this is ${version}: start that version or a later one, or name an empty folder with NIGHTSHIFT_STATE_DIR. Nothing was changed.`,
    )
  const held = heldIn(stateDir)
  if (held !== null && held !== purpose) throw new Error(explain(stateDir, held, purpose))
  const file = join(stateDir, 'purpose.json')
  writeFileSync(`${file}.new`, `${JSON.stringify({ purpose, version } satisfies Kept)}\n`, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

function explain(stateDir: string, held: Purpose | 'both', purpose: Purpose): string {
  const start = purpose === 'site' ? 'npm start -- --site' : 'npm start'
  const aside = `${stateDir}-before`
  if (held === 'both')
    return (
      `${stateDir} has hosts of the lab and of a site, because an older version kept both in one place. Nothing was changed.\n` +
      `To begin with an empty folder: mv ${stateDir} ${aside}, then "${start}". The old folder can still be started, and "nightshift inventory export" exports\n` +
      `your hosts: NIGHTSHIFT_STATE_DIR=${aside} npm start -- --site. To undo this, move the folder back.`
    )
  if (held === 'site' && basename(stateDir) === '.nightshift')
    return (
      `${stateDir} has your site, because an older version kept it there. The lab's hosts must not mix with it. Nothing was changed.\n` +
      `Move the site: mv ${stateDir} ${stateDir}-site, then "${start}". The site then starts with "npm start -- --site".`
    )
  const [there, wanted] = held === 'lab' ? ['the lab', 'a site'] : ['a site', 'the lab']
  return `${stateDir} has ${there}, and ${wanted} needs its own folder: leave NIGHTSHIFT_STATE_DIR unset, or set it to an empty folder. Nothing was changed.`
}

/**
 * Throws if DATABASE_URL names the database of this checkout's other purpose. Otherwise the lab's
 * incidents would be mixed with the site's.
 */
export function refuseSharedStores(rootDir: string, stateDir: string, purpose: Purpose, env: Environment): void {
  const other = purpose === 'lab' ? 'site' : 'lab'
  const otherDir = stateDirFor(rootDir, other)
  const theirs = otherDir === stateDir ? undefined : readRunFile(otherDir)
  const given = setting(env, 'DATABASE_URL')
  if (theirs && given !== undefined && isSameDatabase(given, theirs.databaseUrl))
    throw new Error(
      `DATABASE_URL names the database of ${other === 'lab' ? 'the lab' : 'your site'} (${otherDir}): name another database, or leave DATABASE_URL unset, and Nightshift starts its own PostgreSQL. Nothing was changed.`,
    )
}

/** Compares server and database of two URLs, and ignores the login. */
export function isSameDatabase(one: string, other: string | undefined): boolean {
  return other !== undefined && placeOf(one) === placeOf(other)
}

function placeOf(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) return databaseUrl
  const { hostname, port, pathname } = new URL(databaseUrl)
  return `${hostname.replace('localhost', '127.0.0.1')}:${port || '5432'}${pathname}`
}

/**
 * Lists the installations that were started from this checkout and still run. The lab comes first.
 */
export function runningStarts(rootDir: string, named: string | undefined): LocalRun[] {
  const places = named ? [named] : [stateDirFor(rootDir, 'lab'), stateDirFor(rootDir, 'site')]
  return [...new Set(places)].flatMap((dir) => {
    const run = readRunFile(dir)
    return run?.pid && isThere(run.pid) ? [run] : []
  })
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function readKept(stateDir: string): Kept | undefined {
  try {
    return JSON.parse(readFileSync(join(stateDir, 'purpose.json'), 'utf8')) as Kept
  } catch {
    return undefined
  }
}

/** Compares versions by numbers: 0.10.0 is newer than 0.9.2. False for text without numbers. */
function isNewer(one: string, other: string): boolean {
  const [ones, others] = [one, other].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)))
  for (const [index, number] of (ones ?? []).entries()) {
    const difference = number - (others?.[index] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}
