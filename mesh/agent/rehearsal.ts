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

/** A check for the person who decides: the command that ran on the copy, and its output. */
type CheckRun = { argv: string[]; exit_code: number | null; output: string }

const maxOutputCharacters = 8_192

/** Replaces the content of a file that contains secrets. */
export const withheld = '[not shown: such files contain secrets]\n'

export const rehearsalsIn = (state: string): string => join(state, 'rehearsals')

/**
 * Makes a temporary directory below the agent's state for `act`, and always removes it afterwards.
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
 * Removes the copies that a killed agent left behind, and returns the number of removed copies.
 * Called at the start and hourly.
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

/** A file under its real path, and its copy for the checks. */
export type Copy = { path: string; copy: string }

/**
 * Runs the manifest's checks whose `path` matches a file, on the file's copy, confined like reads.
 * Only the agent can read the copies: if reads run as another user, a check fails, and its exit
 * code shows this. A check can print any file that the agent can read, if the content includes it
 * (`include /etc/shadow`). Known secrets are removed from the output; run the agent without rights
 * to protect other secrets.
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

/** Seconds for one read of a dry run. */
const patienceSeconds = 5
export const patiently = (argv: readonly string[]): string[] => ['timeout', '-k', '1', String(patienceSeconds), ...argv]

/** `told` is for a person to read. `rests` is part of the state that the person approves. */
type Fact = { told: string; rests: string }

/**
 * Describes the files at these paths now. Shows no content of a file. Describes no secret file and
 * no file of the agent, under this name or behind a symbolic link.
 */
export async function fileFacts(paths: readonly string[], { hidden }: Pick<ProbeContext, 'hidden'>): Promise<Fact[]> {
  const users = await userNames()
  return Promise.all(paths.map((path) => factOf(path, hidden, users)))
}

async function factOf(path: string, hidden: readonly string[], users: ReadonlyMap<string, string>): Promise<Fact> {
  const why = whyNotLooked(path, hidden) ?? whyNotLooked(await realOf(path), hidden)
  if (why !== null) return { told: `${path}: not checked, ${why}`, rests: `${path} unseen` }
  const found = await inTime(lstat(path, { bigint: true }))
  if (!found) return { told: `${path}: does not exist, or the agent may not see it`, rests: `${path} absent` }
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

/**
 * Limits the time of a read, because a file system that does not respond must not block the dry
 * run. Null for a failed or late read.
 */
async function inTime<T>(look: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), patienceSeconds * 1_000)
  })
  return Promise.race([look.catch(() => null), late]).finally(() => clearTimeout(timer))
}

/**
 * Whether programs append to the file all the time. Growth of the file then does not change the
 * approved state, but another file under its name does.
 */
export function isFilled(path: string): boolean {
  return (
    /^\/(?:proc|sys|run|dev|var\/(?:log|run|tmp|cache|spool))(?:\/|$)/.test(path) ||
    /\/(?:logs?|cache)\//.test(path) ||
    /\.(?:log|out|err|pid|sock|lock|wal|journal)(?:[.-]\d+)?$|-wal$/.test(path)
  )
}

/** Returns why a path is not read without approval. Null if it may be read. */
export function whyNotLooked(path: string, hidden: readonly string[]): string | null {
  if (hidden.some((each) => isInside(path, each))) return 'the file belongs to the agent'
  return kindOfSystemPath(path) === null ? null : 'the file counts as a secret'
}

/** Finds the program of a command's first word in the PATH of commands. Null for no program. */
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

/**
 * The largest program whose digest is computed, in bytes. Size and time identify a larger program.
 */
const maxDigestBytes = 256 * 1024 * 1024

/** Describes the file, owner and digest of each program. A person approves these programs. */
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
        return { told: `program ${word}: does not exist, so it would not start`, rests: `${word} absent` }
      const file = await realOf(named)
      if (whyNotLooked(file, hidden) !== null)
        return { told: `program ${word}: ${file}, not checked`, rests: `${word} ${file}` }
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
 * Lists every file that a removal would delete, with kind and size, down to the end of the tree on
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
  // Counts the list as incomplete after a timeout (exit code 124) or another error.
  const isWhole = ran.exitCode === 0 && !ran.truncated
  const count = `${files.length} files, ${entries.length - files.length} directories, ${bytes} bytes`
  const told = [
    isWhole ? `would be removed: ${count}` : `would be removed: at least ${count}; not everything could be checked`,
    ...entries.slice(0, 20).map(({ kind, size, name }) => `  ${kind === 'd' ? `${name}/` : `${name} (${size} bytes)`}`),
    ...(entries.length > 20 ? [`  … and ${entries.length - 20} more`] : []),
  ]
  return { told, rests: entries.map(({ kind, name }) => `${kind} ${name}`).sort() }
}
