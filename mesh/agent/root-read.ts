import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { RootRead } from '../../safety/command/analysis.ts'
import { type CapabilityContext, CapabilityError, type RunOptions, type RunResult } from './capability.ts'
import { find } from './programs.ts'

/**
 * Runs a command that the manifest lets root run to read. The command runs alone, without a shell,
 * as root would start it. It runs outside of the sandbox, which disables set-user-ID programs. The
 * later commands of a pipe read its output inside the sandbox.
 */

const sudo = '/usr/bin/sudo'
/** The most characters of standard error that are kept from the command of root. */
const maxErrors = 4_000

/**
 * Returns why the command needs approval now. Null if only root can replace its program and files.
 */
export function whyNoRootRead({ argv }: RootRead): string | null {
  if (!isRootsSudo()) return `${sudo} is not a set-user-ID program of root`
  const program = programOf(argv)
  if (program === null) return `${argv[0]} is not among the system's own programs`
  if (writersOf(program) !== 'root') return `users other than root may write ${program} or a directory above it`
  const word = argv.slice(1).find((each) => pathsIn(each).some((path) => !isRootsWay(path)))
  return word === undefined ? null : `users other than root may replace the target of ${word}`
}

/** Runs the command as root. `inSandbox` runs the later commands of the pipe with its output. */
export async function readAsRoot(
  read: RootRead,
  context: CapabilityContext,
  inSandbox: (rest: string, options: Pick<RunOptions, 'input'>) => Promise<RunResult>,
): Promise<RunResult> {
  // Checks again, because the files may have changed since the decision.
  const why = whyNoRootRead(read)
  if (why !== null) throw new CapabilityError('approval_required', `The call needs a grant now: ${why}.`)
  const { argv, rest } = read
  const told = rest === null ? { onLine: context.emit } : {}
  const words = [sudo, '-n', '--', programOf(argv) ?? '', ...argv.slice(1)]
  const first = await context.run(words, { cwd: '/', confine: 'root', ...told })
  if (rest === null || first.stoppedBy !== null) return first
  const last = await inSandbox(rest, { input: first.stdout })
  return {
    ...last,
    stderr: first.stderr.slice(0, maxErrors) + last.stderr,
    truncated: first.truncated || last.truncated,
  }
}

function isRootsSudo(): boolean {
  const found = lstatSync(sudo, { throwIfNoEntry: false })
  const isSetUser = found?.isFile() === true && found.uid === 0 && (found.mode & 0o4000) !== 0
  return isSetUser && writersOf(sudo) === 'root'
}

/** Finds the command's program in the system's directories, without using `PATH`. */
function programOf([name = '']: readonly string[]): string | null {
  const path = name.startsWith('/') ? name : find(name)
  const isProgram = path !== null && statSync(path, { throwIfNoEntry: false })?.isFile() === true
  return isProgram ? path : null
}

/** Lists each path in a word, because `--file=/etc/hosts` and `-f/etc/hosts` contain a path too. */
function pathsIn(word: string): string[] {
  const at = word.indexOf('/')
  return [resolve('/', word), ...(at > 0 ? [word.slice(at)] : [])]
}

/**
 * Whether only root can change where this path leads. The file itself may belong to anybody, unless
 * it is a symbolic link.
 */
function isRootsWay(path: string): boolean {
  const at = resolve(path)
  const found = lstatSync(at, { throwIfNoEntry: false })
  if (found?.isSymbolicLink()) return writersOf(at) === 'root'
  if (at === '/') return true
  return found ? writersOf(dirname(at)) === 'root' : isRootsWay(dirname(at)) && !isOpenToOthers(dirname(at))
}

/** Whether other users may write in a directory, in which they could create a missing file. */
function isOpenToOthers(directory: string): boolean {
  return writersOf(directory) === 'others'
}

/** The most symbolic links that are followed for one path. */
const maxLinks = 40

/**
 * Returns who can write or replace a path: `absent` if it does not exist, `root` if only root can,
 * otherwise `others`.
 */
export function writersOf(path: string): 'absent' | 'root' | 'others' {
  if (!path.startsWith('/')) return 'others'
  let links = 0
  let verdict: 'root' | 'others' = 'root'
  let left = resolve(path).split('/').filter(Boolean)
  let at = ''
  if (!isRoots('/')) return 'others'
  while (left.length > 0) {
    const name = left.shift() as string
    if (name === '..') {
      at = at === '' ? '' : dirname(at) === '/' ? '' : dirname(at)
      continue
    }
    if (name === '.') continue
    const next = `${at}/${name}`
    const found = lstatSync(next, { throwIfNoEntry: false })
    if (!found) return 'absent'
    if (found.isSymbolicLink()) {
      links += 1
      if (links > maxLinks) return 'others'
      if (found.uid !== 0) verdict = 'others'
      const target = readlinkSync(next)
      left = [...target.split('/').filter(Boolean), ...left]
      if (target.startsWith('/')) at = ''
      continue
    }
    if (found.uid !== 0 || (found.mode & 0o022) !== 0) verdict = 'others'
    at = next
  }
  return verdict
}

/** The most entries that are checked for one read. */
const maxEntries = 1_000

/**
 * Checks a directory with all files in it. Returns the first path that others may write. Null for
 * none.
 */
export function writableBelow(path: string): string | null {
  const waiting = [path]
  for (let seen = 0; waiting.length > 0; seen += 1) {
    const at = waiting.pop() as string
    if (seen > maxEntries || writersOf(at) === 'others') return at
    if (statSync(at, { throwIfNoEntry: false })?.isDirectory())
      waiting.push(...readdirSync(at).map((name) => `${at}/${name}`))
  }
  return null
}

function isRoots(path: string): boolean {
  const { uid, mode } = lstatSync(path)
  return uid === 0 && (mode & 0o022) === 0
}
