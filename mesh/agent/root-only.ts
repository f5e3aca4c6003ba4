import { lstatSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** More links than this lead nowhere. */
const mostLinks = 40

/** `absent`; `root`: nobody but root can write it, or put another one in its place; else `others`. */
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
      if (links > mostLinks) return 'others'
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

/** More entries than this nobody looks at for one read. */
const mostEntries = 1_000

/** The same of a directory with all that is in it: the first that others may write, or null. */
export function writableBelow(path: string): string | null {
  const waiting = [path]
  for (let seen = 0; waiting.length > 0; seen += 1) {
    const at = waiting.pop() as string
    if (seen > mostEntries || writersOf(at) === 'others') return at
    if (statSync(at, { throwIfNoEntry: false })?.isDirectory())
      waiting.push(...readdirSync(at).map((name) => `${at}/${name}`))
  }
  return null
}

function isRoots(path: string): boolean {
  const { uid, mode } = lstatSync(path)
  return uid === 0 && (mode & 0o022) === 0
}
