import { realpathSync, statSync } from 'node:fs'

/** What belongs to the agent alone: its state with journal and nonces, and files of keys that lie elsewhere. */
export type Hidden = {
  paths: readonly string[]
  /** A directory below one of them that a rehearsed check has to see. */
  rehearsals: string | null
}

export const nothingHidden: Hidden = { paths: [], rehearsals: null }

type Mount = { device: string; root: string; target: string }

/**
 * Every path by which this machine shows one of them. A file system may be mounted at several places, and a mask over one of them would
 * leave the others.
 */
export function shownAt(path: string, mountinfo: string): string[] {
  const real = existing(path)
  if (real === null) return []
  const mounts = mountsIn(mountinfo)
  // Of mounts on top of each other the last one is seen.
  const own = mounts
    .filter(({ target }) => isBelow(real, target))
    .reduce<Mount | null>((best, each) => (best && best.target.length > each.target.length ? best : each), null)
  if (!own) return [real]
  const inside = joined(own.root, real.slice(own.target === '/' ? 0 : own.target.length))
  const found = new Set([real])
  for (const { device, root, target } of mounts) {
    if (device !== own.device || !isBelow(inside, root)) continue
    const other = joined(target, inside.slice(root === '/' ? 0 : root.length))
    if (isSame(real, other)) found.add(other)
  }
  return [...found]
}

/** "36 35 98:0 /root /target options …": what is odd in a name is written as `\040`. */
function mountsIn(mountinfo: string): Mount[] {
  return mountinfo
    .split('\n')
    .map((line) => line.split(' '))
    .filter((fields) => fields.length > 5)
    .map(([, , device, root, target]) => ({ device: device!, root: plain(root!), target: plain(target!) }))
}

const plain = (name: string): string =>
  name.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))

const isBelow = (path: string, directory: string): boolean =>
  directory === '/' || path === directory || path.startsWith(`${directory}/`)

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
