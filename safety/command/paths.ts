import { globExpression, globsMeet } from './glob.ts'
import type { Word } from './parse.ts'
import { diskPaths, endlessPaths, homes, publicPaths, secretPaths } from './sensitive.ts'

/**
 * Where a word leads, however it is spelled. `~` is taken for `/root`: what matters about a home is the same in all of them.
 * A path that stays relative after `directories` (what `cd` may have set) is held against the lists by its end.
 */
export function normalise(text: string, directories: readonly string[] = []): string[] {
  const path = collapse(homeFor(text))
  if (path.startsWith('/')) return [path]
  const found = [path]
  // Enough `..` lead to the root from anywhere.
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

export type PathList = { expression: RegExp; meeting: readonly string[] }

/**
 * A list in the two forms it is asked in. What the shell expands becomes names that exist: `*.log` could become `id_rsa.log`,
 * but then `id_rsa*` would forbid every `*.log`. So the open end of a name does not count for what begins with a wildcard.
 */
export const pathList = (patterns: readonly string[]): PathList => ({
  expression: globExpression(patterns),
  meeting: patterns.map((pattern) => pattern.replace(/([^*/]{2})\*(?=\/|$)/g, '$1')),
})

const secrets = pathList(secretPaths)
const open = pathList(publicPaths)
const endless = pathList(endlessPaths)
const disks = pathList(diskPaths)

/** Directories above something secret: whoever reads one with all that is below reads the secret. */
const above = pathList([
  ...new Set([
    ...homes,
    ...secretPaths.filter((pattern) => pattern.startsWith('/')).flatMap((pattern) => ancestors(pattern)),
  ]),
])

function ancestors(pattern: string): string[] {
  const segments = pattern.split('/').slice(1, -1)
  const wild = segments.indexOf('**')
  const named = wild < 0 ? segments : segments.slice(0, wild)
  return ['/', ...named.map((_, index) => `/${named.slice(0, index + 1).join('/')}`)]
}

/** True when the word leads to a path of the list; a word that the shell expands, when it could. */
export function leadsTo(word: Word, list: PathList, directories: readonly string[]): boolean {
  if (word.pattern === null) return normalise(word.text, directories).some((path) => list.expression.test(path))
  return normalise(word.pattern, directories).some(
    (path) => list.expression.test(path) || list.meeting.some((pattern) => globsMeet(pattern, path)),
  )
}

export const leadsToDisk = (word: Word, directories: readonly string[]): boolean => leadsTo(word, disks, directories)

type PathFinding = 'endless' | 'secret' | 'holds secrets'

/** What is wrong with printing the content of a path; with `tree`, of everything below it. */
export function pathFinding(word: Word, directories: readonly string[], tree: boolean): PathFinding | null {
  if (normalise(word.pattern ?? word.text, directories).every((path) => open.expression.test(path))) return null
  if (leadsTo(word, endless, directories)) return 'endless'
  // `..` behind a link goes up from where the link leads, so a way through something secret counts as well.
  const up = word.text.indexOf('/..')
  if (up > 0 && leadsTo({ ...word, text: word.text.slice(0, up), pattern: null }, secrets, directories)) return 'secret'
  if (leadsTo(word, secrets, directories)) return 'secret'
  if (tree && (leadsTo(word, above, directories) || isUnknownDirectory(word))) return 'holds secrets'
  return null
}

type Own = { paths: PathList; above: PathList }
const owned = new WeakMap<readonly string[], Own>()

/** The same for what belongs to an executor itself, wherever it keeps that. */
export function ownFinding(
  word: Word,
  directories: readonly string[],
  { tree, secrets }: { tree: boolean; secrets: readonly string[] },
): PathFinding | null {
  if (secrets.length === 0) return null
  const known = owned.get(secrets)
  const own = known ?? {
    // A name may hold what a pattern would read as a wildcard: it then stands for itself and more.
    paths: pathList(secrets.map((path) => `${path.replace(/[[\]{}\\]/g, '?')}/**`)),
    above: pathList(secrets.flatMap((path) => ancestors(path))),
  }
  if (!known) owned.set(secrets, own)
  if (leadsTo(word, own.paths, directories)) return 'secret'
  return tree && leadsTo(word, own.above, directories) ? 'holds secrets' : null
}

/** `.` and `..` may be any directory. */
const isUnknownDirectory = (word: Word): boolean => /^(?:\.\.?\/*)+$/.test(word.text)
