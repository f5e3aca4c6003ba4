import { createHash } from 'node:crypto'
import { accessSync, type BigIntStats, constants, createReadStream } from 'node:fs'
import { lstat, mkdir, mkdtemp, readdir, realpath, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { globExpression } from '../../safety/command/patterns.ts'
import { redact } from '../../safety/redact.ts'
import { isInside, kindOfSystemPath } from '../specs/spec.ts'
import type { CapabilityContext } from './capability.ts'
import { argvVerdict } from './guard.ts'
import { isSecret } from './manifest.ts'
import { userNames } from './process-facts.ts'
import { path as searchPath } from './run.ts'

/** What the person who decides is shown of one check: what ran on the copy, and what it said. */
type CheckRun = { argv: string[]; exit_code: number | null; output: string }

const maxOutputCharacters = 8_192

/** In place of what a file with secrets in it would show. */
export const withheld = '[not shown: such files hold secrets]\n'

export const rehearsalsIn = (state: string): string => join(state, 'rehearsals')

/**
 * A throw-away directory below the agent's state for as long as an act takes; whatever happens, it
 * is gone afterwards.
 */
export async function inThrowAway<T>(state: string, act: (directory: string) => Promise<T>): Promise<T> {
  const parent = rehearsalsIn(state)
  await mkdir(parent, { recursive: true, mode: 0o700 })
  const directory = await mkdtemp(join(parent, 'r-'))
  try {
    return await act(directory)
  } finally {
    await remove(directory)
  }
}

/**
 * Removes what rehearsals of an agent that was killed left behind, and answers how many. To be
 * called at the start and hourly.
 */
export async function sweepRehearsals(
  state: string,
  olderThanSeconds: number,
  now: number = Date.now(),
): Promise<number> {
  const parent = rehearsalsIn(state)
  const names = await readdir(parent).catch(() => [])
  let swept = 0
  for (const name of names) {
    const directory = join(parent, name)
    const found = await lstat(directory).catch(() => null)
    if (!found || now - found.mtimeMs < olderThanSeconds * 1_000) continue
    await remove(directory)
    swept++
  }
  return swept
}

const remove = (directory: string) => rm(directory, { recursive: true, force: true, maxRetries: 3 })

/** A file under its real path, and its copy that the checks are tried on. */
export type Copy = { path: string; copy: string }

/**
 * Runs the manifest's checks whose `path` matches one of the files, on their copies, confined as
 * reads are. Copies are the agent's alone: where reads run as another user, a check cannot open
 * them and its exit code says so. What a check prints may come from any file that the agent can
 * read, if the content makes it (`include /etc/shadow`): known secrets are taken out, the rest is a
 * reason to run the agent without rights.
 */
export async function runChecks(
  copies: readonly Copy[],
  directory: string,
  { manifest, run }: Pick<CapabilityContext, 'manifest' | 'run'>,
): Promise<CheckRun[]> {
  const runs: CheckRun[] = []
  for (const { path, copy } of copies) {
    for (const check of manifest.checks) {
      if (!globExpression([check.path]).test(path)) continue
      const argv = check.argv.map((word) => word.replaceAll('{path}', copy))
      const { exitCode, stdout, stderr } = await run(argv, { cwd: directory, confine: 'read', sees: ['rehearsals'] })
      const said = redact(stdout + stderr)
        .slice(0, maxOutputCharacters)
        .toWellFormed()
      const output = isSecret(path) ? withheld : said
      runs.push({ argv, exit_code: exitCode, output })
    }
  }
  return runs
}

type ProbeContext = Pick<CapabilityContext, 'run' | 'hidden'>

/** A look of a rehearsal may take no longer. */
const patienceSeconds = 5
export const patiently = (argv: readonly string[]): string[] => ['timeout', '-k', '1', String(patienceSeconds), ...argv]

/** `told`: for a person. `rests`: part of the state that a person approves. */
type Fact = { told: string; rests: string }

/**
 * What lies at these paths now: nothing of a file's content, and nothing at all of what is held for
 * secret or belongs to the agent, by this name or behind a link.
 */
export async function fileFacts(paths: readonly string[], { hidden }: Pick<ProbeContext, 'hidden'>): Promise<Fact[]> {
  const users = await userNames()
  return Promise.all(paths.map((path) => factOf(path, hidden, users)))
}

async function factOf(path: string, hidden: readonly string[], users: ReadonlyMap<string, string>): Promise<Fact> {
  const why = whyNotLooked(path, hidden) ?? whyNotLooked(await realOf(path), hidden)
  if (why !== null) return { told: `${path}: not looked at, ${why}`, rests: `${path} unseen` }
  const found = await inTime(lstat(path, { bigint: true }))
  if (!found) return { told: `${path}: is not there, or the agent may not see it`, rests: `${path} absent` }
  const type = typeOf(found)
  const mode = (found.mode & 0o7777n).toString(8)
  const owner = users.get(String(found.uid)) ?? String(found.uid)
  const changed = found.mtime.toISOString().slice(0, 19).replace('T', ' ')
  const about = type === 'file' ? `file of ${found.size} bytes` : type
  const told = `${path}: ${about}, of ${owner}, mode ${mode}, changed ${changed} UTC`
  const content = type !== 'file' || isFilled(path) ? [] : [found.size, found.mtimeNs]
  return { told, rests: [path, type, found.uid, found.gid, mode, found.ino, ...content].join(' ') }
}

function typeOf(found: BigIntStats): string {
  if (found.isFile()) return 'file'
  if (found.isDirectory()) return 'directory'
  return found.isSymbolicLink() ? 'symbolic link' : found.isBlockDevice() ? 'block device' : 'special file'
}

/** A file system that does not answer must not keep the rehearsal; null for whatever went wrong. */
async function inTime<T>(look: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), patienceSeconds * 1_000)
  })
  return Promise.race([look.catch(() => null), late]).finally(() => clearTimeout(timer))
}

/**
 * Files that programs append to all the time: growth does not change the approved state, another
 * file under the name does.
 */
export function isFilled(path: string): boolean {
  return (
    /^\/(?:proc|sys|run|dev|var\/(?:log|run|tmp|cache|spool))(?:\/|$)/.test(path) ||
    /\/(?:logs?|cache)\//.test(path) ||
    /\.(?:log|out|err|pid|sock|lock|wal|journal)(?:[.-]\d+)?$|-wal$/.test(path)
  )
}

/** Why a path is not read without approval; null where it may be. */
export function whyNotLooked(path: string, hidden: readonly string[]): string | null {
  if (hidden.some((each) => isInside(path, each))) return 'it belongs to the agent'
  return kindOfSystemPath(path) === null ? null : 'it is held for secret'
}

/**
 * The program that a first word starts, as the path of commands is searched; null when there is
 * none.
 */
function programAt(word: string, cwd: string): string | null {
  const places = word.includes('/')
    ? [resolve(cwd, word)]
    : searchPath.split(':').map((directory) => join(directory, word))
  return places.find(isExecutable) ?? null
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Larger programs are identified by size and time. */
const maxDigestBytes = 256 * 1024 * 1024

/** Which file each program is, whose it is and what it holds: a person agrees to this one. */
export async function programFacts(
  words: readonly string[],
  cwd: string,
  { hidden }: Pick<ProbeContext, 'hidden'>,
): Promise<Fact[]> {
  const users = await userNames()
  return Promise.all(
    words.map(async (word): Promise<Fact> => {
      const named = programAt(word, cwd)
      if (named === null)
        return { told: `program ${word}: is not there, so it would not start`, rests: `${word} absent` }
      const file = await realOf(named)
      if (whyNotLooked(file, hidden) !== null)
        return { told: `program ${word}: ${file}, not looked at`, rests: `${word} ${file}` }
      const found = await inTime(stat(file))
      const owner = found === null ? 'an unknown user' : (users.get(String(found.uid)) ?? `user ${found.uid}`)
      const digest = found?.isFile() && found.size <= maxDigestBytes ? await inTime(digestOf(file)) : null
      const content = digest === null ? `${found?.size ?? '?'} bytes` : `sha256 ${digest.slice(0, 16)}…`
      return {
        told: `program ${word}: ${file}, of ${owner}, ${content}`,
        rests: `${word} ${file} ${owner} ${digest ?? `${found?.size} ${found?.mtimeMs}`}`,
      }
    }),
  )
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const bytes of createReadStream(file)) hash.update(bytes as Buffer)
  return hash.digest('hex')
}

async function realOf(path: string): Promise<string> {
  return (await inTime(realpath(path))) ?? path
}

/**
 * What a removal would take with it: each name with its kind and size, to the end of the tree, on
 * this file system.
 */
export async function treeFacts(
  paths: readonly string[],
  context: ProbeContext,
): Promise<{ told: string[]; rests: string[] } | null> {
  const format = '%y %s %p\\n'
  const open = paths.filter((path) => whyNotLooked(path, context.hidden) === null)
  if (open.length === 0) return null
  const look = ['find', ...open, '-xdev', '-printf', format]
  if (argvVerdict(look, '/', { secrets: context.hidden }).verdict !== 'run') return null
  const ran = await context.run(patiently(look), { confine: 'read' })
  const entries = ran.stdout.split('\n').flatMap((line) => {
    const [, kind, size, name] = /^(\S) (\d+) (.*)$/.exec(line) ?? []
    return kind && name !== undefined ? [{ kind, size: Number(size), name }] : []
  })
  const files = entries.filter(({ kind }) => kind !== 'd')
  const bytes = files.reduce((sum, { size }) => sum + size, 0)
  // 124: its time was over. What an error hid is not in the list either.
  const isWhole = ran.exitCode === 0 && !ran.truncated
  const count = `${files.length} files, ${entries.length - files.length} directories, ${bytes} bytes`
  const told = [
    isWhole ? `would go: ${count}` : `would go: at least ${count}; not all of it could be looked at`,
    ...entries.slice(0, 20).map(({ kind, size, name }) => `  ${kind === 'd' ? `${name}/` : `${name} (${size} bytes)`}`),
    ...(entries.length > 20 ? [`  … and ${entries.length - 20} more`] : []),
  ]
  return { told, rests: entries.map(({ kind, name }) => `${kind} ${name}`).sort() }
}
