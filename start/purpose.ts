import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { version } from '../domain/version.ts'
import { type Environment, setting } from './environment.ts'
import { type LocalRun, readRunFile } from './run-file.ts'

/**
 * The purpose of a state folder. Lab and site never share one: a host, source or incident of the
 * lab would become the site's.
 */
export type Purpose = 'lab' | 'site'

type Kept = { purpose: Purpose; version: string }

/** A lab runs where it is wanted and nothing in the environment stands in for it. */
export function purposeOf(env: Environment, lab: boolean): Purpose {
  const isReplaced = ['CORE_API_URL', 'PLATFORM_URL', 'PROXMOX_URL'].some((name) => setting(env, name) !== undefined)
  return lab && !isReplaced ? 'lab' : 'site'
}

/**
 * The state folders of a checkout. A site that began in the lab's place, as sites once did, stays
 * there.
 */
export function stateDirFor(rootDir: string, purpose: Purpose): string {
  const own = join(rootDir, '.nightshift')
  const site = join(rootDir, '.nightshift-site')
  if (purpose === 'lab') return own
  return !existsSync(site) && heldIn(own) === 'site' ? own : site
}

/** The state folder of this checkout that was used last; the lab's where there is none. */
export function lastStateDir(rootDir: string): string {
  const places = [stateDirFor(rootDir, 'lab'), stateDirFor(rootDir, 'site')]
  const usedAt = (dir: string) => statSync(join(dir, 'run.json'), { throwIfNoEntry: false })?.mtimeMs ?? 0
  return places.sort((one, other) => usedAt(other) - usedAt(one))[0] as string
}

/** The lab's machines (`labDirectory`): beside the state folder, or where this file says. */
const hasLabBeside = (stateDir: string) => existsSync(`${stateDir}-lab`) || existsSync(join(stateDir, 'lab-location'))

/** The folder's content; `both` from an older version, null where it is empty. */
function heldIn(stateDir: string): Purpose | 'both' | null {
  const kept = readKept(stateDir)
  if (kept) return kept.purpose
  const run = readRunFile(stateDir)
  if (!run) return null
  if (run.labUrl !== null) return 'lab'
  return hasLabBeside(stateDir) ? 'both' : 'site'
}

/**
 * Takes the folder for this purpose and writes that into it. Throws, before any change, where it
 * holds the other purpose or a newer version's state; the message says how to go on.
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
      `${stateDir} holds the lab's hosts beside those of a site, from a version that kept both in one place. Nothing was changed.\n` +
      `Begin afresh: mv ${stateDir} ${aside}, then "${start}". What it holds still starts, and "nightshift inventory export" takes\n` +
      `your hosts along: NIGHTSHIFT_STATE_DIR=${aside} npm start -- --site. The same mv is the way back.`
    )
  if (held === 'site' && basename(stateDir) === '.nightshift')
    return (
      `${stateDir} holds your site, from a version that kept it there, and the lab's hosts do not belong to it. Nothing was changed.\n` +
      `Give the site a place of its own: mv ${stateDir} ${stateDir}-site, then "${start}". The site starts from there with "npm start -- --site".`
    )
  const [there, wanted] = held === 'lab' ? ['the lab', 'a site'] : ['a site', 'the lab']
  return `${stateDir} holds ${there}, and ${wanted} needs a folder of its own: leave NIGHTSHIFT_STATE_DIR unset, or name an empty folder with it. Nothing was changed.`
}

/**
 * Refuses stores of the environment that this checkout's other purpose uses: two queues would run
 * in one namespace, and the lab's incidents stand among the site's.
 */
export function refuseSharedStores(rootDir: string, stateDir: string, purpose: Purpose, env: Environment): void {
  const other = purpose === 'lab' ? 'site' : 'lab'
  const otherDir = stateDirFor(rootDir, other)
  const theirs = otherDir === stateDir ? undefined : readRunFile(otherDir)
  const given = setting(env, 'DATABASE_URL')
  if (theirs && given !== undefined && isSameDatabase(given, theirs.databaseUrl))
    throw new Error(
      `DATABASE_URL names the database of ${other === 'lab' ? 'the lab' : 'your site'} (${otherDir}): name another one, or leave it unset for a PostgreSQL of its own. Nothing was changed.`,
    )
}

/** Compares server and database; the login does not count. */
export function isSameDatabase(one: string, other: string | undefined): boolean {
  return other !== undefined && placeOf(one) === placeOf(other)
}

function placeOf(databaseUrl: string): string {
  if (!URL.canParse(databaseUrl)) return databaseUrl
  const { hostname, port, pathname } = new URL(databaseUrl)
  return `${hostname.replace('localhost', '127.0.0.1')}:${port || '5432'}${pathname}`
}

/** The starts of this checkout that run now, the lab's first. */
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

/** By numbers, as 0.10.0 is newer than 0.9.2. What is no such version is not newer. */
function isNewer(one: string, other: string): boolean {
  const [ones, others] = [one, other].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)))
  for (const [index, number] of (ones ?? []).entries()) {
    const difference = number - (others?.[index] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}
