import { realpathSync, statSync } from 'node:fs'
import { isInside } from '../specs/spec.ts'

/** A line of `/proc/self/mountinfo`. Numbers stay text, because they are identifiers. */
export type Mount = {
  id: string
  /** The id of the mount below which this mount is mounted. */
  parent: string
  device: string
  /** The path inside the file system that is mounted. */
  root: string
  target: string
  options: readonly string[]
  type: string
  source: string
  superOptions: readonly string[]
}

/** Reads lines of the form "36 35 98:0 /root /target options optional… - type source options". */
export function readMounts(mountinfo: string): Mount[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ')
    const [id, parent, device, root, target, options = ''] = before.split(' ')
    const [type = '', source = '', superOptions = ''] = after.split(' ')
    if (id === undefined || parent === undefined || !device || root === undefined || target === undefined) return []
    return [
      {
        ...{ id, parent, device, type },
        ...{ root: unquote(root), target: unquote(target), source: unquote(source) },
        ...{ options: options.split(','), superOptions: superOptions.split(',') },
      },
    ]
  })
}

/** Decodes spaces, tabs, newlines and backslashes, which the kernel writes in octal. */
const unquote = (text: string) =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** The type of a mounted namespace, which is not a file system and cannot be written. */
const namespaces = 'nsfs'

/**
 * Lists the mounts to which a path could write. Only the last of stacked mounts is reachable, and
 * no mount below a covered directory is. Ignores a mount over `/`, because a running process keeps
 * the root that it started with.
 */
export function writableIn(mounts: readonly Mount[]): Mount[] {
  const byId = new Map(mounts.map((each) => [each.id, each]))
  const byParent = Map.groupBy(mounts, ({ parent }) => parent)

  function isReached(mount: Mount): boolean {
    const isCovered = byParent
      .get(mount.id)
      ?.some(({ id, target }) => id !== mount.id && target === mount.target && target !== '/')
    return !isCovered && hasWay(mount)
  }

  function hasWay(mount: Mount): boolean {
    const below = byId.get(mount.parent)
    if (!below || below === mount) return true
    const isCovered = byParent
      .get(mount.parent)
      ?.some(({ target }) => target !== mount.target && target !== '/' && isInside(mount.target, target))
    if (isCovered) return false
    return mount.target === below.target ? hasWay(below) : isReached(below)
  }

  return mounts.filter((each) => !each.options.includes('ro') && each.type !== namespaces && isReached(each))
}

/**
 * Lists every path under which this machine shows the given path. A file system may be mounted at
 * several places, so hiding only one path would leave the file visible at the others.
 */
export function shownAt(path: string, mounts: readonly Mount[]): string[] {
  const real = existing(path)
  if (real === null) return []
  // Chooses the last of stacked mounts, because only the last is visible.
  const own = mounts
    .filter(({ target }) => isInside(real, target))
    .reduce<Mount | null>((best, each) => (best && best.target.length > each.target.length ? best : each), null)
  if (!own) return [real]
  const inside = joined(own.root, real.slice(own.target === '/' ? 0 : own.target.length))
  const found = new Set([real])
  for (const { device, root, target } of mounts) {
    if (device !== own.device || !isInside(inside, root)) continue
    const other = joined(target, inside.slice(root === '/' ? 0 : root.length))
    if (isSame(real, other)) found.add(other)
  }
  return [...found]
}

const joined = (directory: string, rest: string): string => (directory === '/' ? '' : directory) + rest || '/'

function existing(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

function isSame(one: string, other: string): boolean {
  try {
    const [a, b] = [statSync(one), statSync(other)]
    return a.ino === b.ino && a.dev === b.dev
  } catch {
    return false
  }
}
