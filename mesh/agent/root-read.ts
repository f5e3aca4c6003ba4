import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { RootRead } from '../../safety/command/analysis.ts'
import { type CapabilityContext, CapabilityError, type RunOptions, type RunResult } from './capability.ts'
import { find } from './programs.ts'

/**
 * A command that the manifest lets root look with. No sandbox lets a set-user-ID program work, so
 * it runs outside of one: by itself, without a shell, as root would start it. The rest of a pipe
 * reads what it printed, inside.
 */

const sudo = '/usr/bin/sudo'
/** Its complaints before the rest of the pipe began. */
const maxErrors = 4_000

/**
 * Why it does not run unasked just now; null when root alone decides what it runs and what it
 * reads.
 */
export function whyNoRootRead({ argv }: RootRead): string | null {
  if (!isRootsSudo()) return `${sudo} is not there as root's own set-user-ID program`
  const program = programOf(argv)
  if (program === null) return `${argv[0]} is not among the system's own programs`
  if (writersOf(program) !== 'root') return `others than root may write ${program} or the way to it`
  const word = argv.slice(1).find((each) => pathsIn(each).some((path) => !isRootsWay(path)))
  return word === undefined ? null : `others than root may put something else where ${word} leads`
}

/** Runs it, and then the rest of the pipe with what it printed. `inSandbox` runs the rest. */
export async function readAsRoot(
  read: RootRead,
  context: CapabilityContext,
  inSandbox: (rest: string, options: Pick<RunOptions, 'input'>) => Promise<RunResult>,
): Promise<RunResult> {
  // Checked again: it may have changed since the ruling.
  const why = whyNoRootRead(read)
  if (why !== null) throw new CapabilityError('approval_required', `It needs a grant just now: ${why}.`)
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

/** Where the system has it: what `PATH` says is not asked. */
function programOf([name = '']: readonly string[]): string | null {
  const path = name.startsWith('/') ? name : find(name)
  const isProgram = path !== null && statSync(path, { throwIfNoEntry: false })?.isFile() === true
  return isProgram ? path : null
}

/** Each path that a word may hold: `--file=/etc/hosts` and `-f/etc/hosts` hold one, too. */
function pathsIn(word: string): string[] {
  const at = word.indexOf('/')
  return [resolve('/', word), ...(at > 0 ? [word.slice(at)] : [])]
}

/**
 * Can root alone change where this path leads? What it leads to may be anybody's, unless that is a
 * link.
 */
function isRootsWay(path: string): boolean {
  const at = resolve(path)
  const found = lstatSync(at, { throwIfNoEntry: false })
  if (found?.isSymbolicLink()) return writersOf(at) === 'root'
  if (at === '/') return true
  return found ? writersOf(dirname(at)) === 'root' : isRootsWay(dirname(at)) && !isOpenToOthers(dirname(at))
}

/** Another user could create what is not there yet. */
function isOpenToOthers(directory: string): boolean {
  return writersOf(directory) === 'others'
}

/** More links than this lead nowhere. */
const maxLinks = 40

/** `absent`; `root`: only root can write it or put another one in its place; else `others`. */
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

/** Limits the work for one read. */
const maxEntries = 1_000

/** The same of a directory with all that is in it: the first that others may write, or null. */
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
