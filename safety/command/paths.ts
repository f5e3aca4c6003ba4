import type { Word } from './parse.ts'
import { type IndexedPath, type PathTest, pathIndex, pathOf } from './path-index.ts'
import { globsMeet } from './patterns.ts'
import {
  diskPaths,
  endlessPaths,
  fetchingPaths,
  hiddenPaths,
  homes,
  measuredPaths,
  openTrees,
  publicPaths,
} from './secret-paths.ts'

/**
 * Returns the paths that a word may mean. `~` counts as `/root`, because all homes are equally
 * secret. A path that stays relative after `directories` (where `cd` may lead) is compared with the
 * lists by its end.
 */
export function normalise(text: string, directories: readonly string[] = []): string[] {
  const path = collapse(homeFor(text))
  if (path.startsWith('/')) return [path]
  const found = [path]
  // Adds the path from the root, because enough `..` reach the root from anywhere.
  if (path.startsWith('..')) found.push(collapse(`/${path.replace(/^(?:\.\.(?:\/|$))+/, '')}`))
  for (const directory of directories) found.push(collapse(`${directory}/${path}`))
  return found
}

function homeFor(text: string): string {
  if (/^(?:\$HOME|\$\{HOME\})(?=\/|$)/.test(text)) return `/root${text.slice(text.startsWith('${') ? 7 : 5)}`
  if (/^(?:\$PWD|\$\{PWD\})(?=\/|$)/.test(text)) return `.${text.slice(text.startsWith('${') ? 6 : 4)}`
  if (text === '~' || text.startsWith('~/') || text.startsWith('~root'))
    return `/root${text.replace(/^~(?:root)?/, '')}`
  if (/^~[a-z_]/.test(text)) return `/home/${text.slice(1)}`
  return text
}

function collapse(path: string): string {
  if (!/\/\/|\/$|(?:^|\/)\.{1,2}(?:\/|$)/.test(path)) return path === '' ? '.' : path
  const kept: string[] = []
  for (const segment of path.split('/')) {
    if (segment === '' || segment === '.') continue
    if (segment !== '..') kept.push(segment)
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop()
    else if (!path.startsWith('/')) kept.push('..')
  }
  return path.startsWith('/') ? `/${kept.join('/')}` : kept.join('/') || '.'
}

export type PathList = { expression: PathTest; meeting: readonly string[] }

/**
 * Builds a list of paths in two forms: for paths, and for patterns that the shell expands. The
 * shell expands a pattern to existing names: `*.log` could become `id_rsa.log`, but then `id_rsa*`
 * would forbid every `*.log`. So the open end of a listed name does not count for a word that
 * begins with a wildcard.
 */
export const pathList = (patterns: readonly string[]): PathList => ({
  expression: pathIndex(patterns),
  meeting: patterns.map((pattern) => pattern.replace(/([^*/]{2})\*(?=\/|$)/g, '$1')),
})

const hidden = pathList(hiddenPaths)
const secrets = pathList([...hiddenPaths, ...measuredPaths])
/** Paths with which a pattern is compared in a tree that is known to hold nothing secret. */
const placed = pathList([...hiddenPaths, ...measuredPaths].filter((pattern) => pattern.startsWith('/')))
/** Listed paths without the directories: a `*.log` in such a directory is still a log. */
const named = pathList(
  [...hiddenPaths, ...measuredPaths].filter((pattern) => pattern.startsWith('/') || !pattern.endsWith('/**')),
)
const kernelTrees = pathList(['/proc/**', '/sys/**'])
const fetching = pathList(fetchingPaths)
const trees = pathList(openTrees)
const open = pathList(publicPaths)
const endless = pathList(endlessPaths)
const disks = pathList(diskPaths)

/** Directories that contain something secret, which may not be read recursively. */
const above = pathList([
  ...new Set([
    ...homes,
    ...hiddenPaths.filter((pattern) => pattern.startsWith('/')).flatMap((pattern) => ancestors(pattern)),
  ]),
])

function ancestors(pattern: string): string[] {
  const segments = pattern.split('/').slice(1, -1)
  const wild = segments.indexOf('**')
  const named = wild < 0 ? segments : segments.slice(0, wild)
  return ['/', ...named.map((_, index) => `/${named.slice(0, index + 1).join('/')}`)]
}

/**
 * Whether an argument leads to a path of the list; for an argument that the shell expands, whether
 * it could lead there.
 */
export function leadsTo(word: Word, list: PathList, directories: readonly string[]): boolean {
  return leads(word, pathsOf(word, directories), list)
}

const pathsOf = ({ pattern, text }: Word, directories: readonly string[]): IndexedPath[] =>
  normalise(pattern ?? text, directories).map(pathOf)

/** Whether an argument with known paths leads to a path of the list. */
function leads({ pattern }: Word, paths: readonly IndexedPath[], list: PathList): boolean {
  if (paths.some((path) => list.expression.test(path))) return true
  return pattern !== null && paths.some(({ text }) => list.meeting.some((other) => globsMeet(other, text)))
}

export const leadsToDisk = (word: Word, directories: readonly string[]): boolean => leadsTo(word, disks, directories)

/**
 * Lists the original names of a copy that an editor, package or person made: `.env~`, `.env.swp`,
 * `#.env#`, `shadow.bak.gz`. Removes all such endings.
 */
function originals(path: string): string[] {
  const found: string[] = []
  let name = path
  while (found.length < 4) {
    const shorter = name
      .replace(
        /(?:~|-\d{6,8}|\.(?:bak|backup|old|orig|save|saved|copy|tmp|sw[a-p]|gz|bz2|xz|zst|lz4|lzma|z|zip|enc|b64|\d+|dpkg-\w+|rpm\w+|ucf-\w+))$/i,
        '',
      )
      .replace(/\/#([^/]+)#$/, '/$1')
      .replace(/\/\.#([^/]+)$/, '/$1')
    if (shorter === name) break
    name = shorter
    found.push(name)
    // Adds the name without its dot, because vi hides its copy: `.passwords.swp` is of `passwords`,
    // `.env.swp` of `.env`.
    if (/\/\.[^/]+$/.test(name)) found.push(name.replace(/\/\.([^/]+)$/, '/$1'))
  }
  return found
}

const mayBeCopy = /[~#]$|\/\.?#|-\d{6,8}$|\.[A-Za-z0-9_-]{1,10}$/

type PathFinding = 'endless' | 'secret' | 'holds secrets' | 'fetches'

/**
 * The use that a program makes of a path: it measures the file, prints it, or prints everything
 * below it.
 */
type PathUse = 'measures' | 'prints' | 'prints tree'

/** Returns why a path may not be used in this way; null if it may. */
export function pathFinding(word: Word, directories: readonly string[], reading: PathUse): PathFinding | null {
  if (word.found) return foundFinding(word, reading)
  const paths = pathsOf(word, directories)
  if (paths.every((path) => open.expression.test(path))) return null
  const list = reading === 'measures' ? hidden : secrets
  if (leads(word, paths, endless)) return 'endless'
  if (leads(word, paths, fetching)) return 'fetches'
  // Checks the way before `..` too: after a link it goes up from the link's target, so the way may
  // lead through something secret.
  const up = word.text.indexOf('/..')
  if (up > 0 && leadsTo({ ...word, text: word.text.slice(0, up), pattern: null }, list, directories)) return 'secret'
  if (isSecret(word, paths, list)) return 'secret'
  if (reading === 'prints tree' && !isOpenTree(word, paths)) return 'holds secrets'
  return null
}

type Own = { paths: PathList; above: PathList }
const owned = new WeakMap<readonly string[], Own>()

/**
 * Returns why a path may not be used, because it leads to the executor's own files, wherever they
 * are.
 */
export function ownFinding(
  word: Word,
  directories: readonly string[],
  { tree, secrets }: { tree: boolean; secrets: readonly string[] },
): PathFinding | null {
  if (secrets.length === 0) return null
  const known = owned.get(secrets)
  const own = known ?? {
    // Replaces wildcard characters in a name by `?`, which matches the character itself and more.
    paths: pathList(secrets.map((path) => `${path.replace(/[[\]{}\\]/g, '?')}/**`)),
    above: pathList(secrets.flatMap((path) => ancestors(path))),
  }
  if (!known) owned.set(secrets, own)
  if (leadsTo(word, own.paths, directories)) return 'secret'
  return tree && leadsTo(word, own.above, directories) ? 'holds secrets' : null
}

const harmlessKind =
  /[^/]\.(?:log|out|err|stdout|stderr|trace|gc|pid|md|rst|service|timer|socket|unit)(?:\.\*|\.\d+)?\*?$/

/** Returns why files below a root may not be read. `*` includes hidden names here. */
function foundFinding(word: Word, reading: PathUse): PathFinding | null {
  if (reading === 'measures') return null
  const [root, name] = word.pattern!.split('/**')
  if (trees.expression.test(pathOf(root!)))
    return placed.meeting.some((pattern) => globsMeet(pattern, word.pattern!)) ? 'secret' : null
  // Outside of open trees, requires a name that shows a kind without secrets, because the file may
  // be anywhere below.
  if (!name || !harmlessKind.test(name)) return 'holds secrets'
  return named.meeting.some((pattern) => globsMeet(pattern, word.pattern!)) ? 'secret' : null
}

function isSecret(word: Word, paths: readonly IndexedPath[], list: PathList): boolean {
  const isKnown = (path: IndexedPath) => trees.expression.test(path) || kernelTrees.expression.test(path)
  if (word.pattern !== null && paths.every(isKnown)) return leads(word, paths, placed)
  if (leads(word, paths, list)) return true
  return paths.some(
    ({ text }) =>
      mayBeCopy.test(text) && originals(`/${text}`).some((original) => list.expression.test(pathOf(original.slice(1)))),
  )
}

/**
 * Whether an argument names a tree that is known to contain nothing secret, or one file with a
 * harmless name.
 */
function isOpenTree(word: Word, paths: readonly IndexedPath[]): boolean {
  if (leads(word, paths, above) || /^(?:\.\.?\/*)+$/.test(word.text)) return false
  return (
    paths.some((path) => trees.expression.test(path)) ||
    /[^/]\.(?!d(?:\.\d+)?$)(?:[a-z][a-z0-9]{0,9})(?:\.\d+)?$/i.test(word.text)
  )
}
