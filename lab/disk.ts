import { createHash } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'

/** Every regular file below `root`, without following links. What vanishes while we look is not there. */
export function filesBelow(root: string): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(root, { withFileTypes: true })
  } catch {
    return []
  }
  return entries.flatMap((entry) => {
    const path = join(root, entry.name)
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })
}

/** Bytes by top-level directory, the way `du` would tell. */
export function bytesByDirectory(root: string): Record<string, number> {
  const bytes: Record<string, number> = {}
  for (const file of filesBelow(root)) {
    const top = relative(root, file).split('/')[0]!
    try {
      bytes[top] = (bytes[top] ?? 0) + statSync(file).size
    } catch {
      // Rotated away in this instant.
    }
  }
  return bytes
}

export function sha256Of(file: string): string {
  try {
    return digest(readFileSync(file))
  } catch {
    return 'missing'
  }
}

/** The beginning of a file: so many bytes, and their sha256. */
export type Beginning = { bytes: number; sha256: string }

/** All that each file below `root` holds now, by path relative to it; only those whose path is wanted. */
export function beginningsBelow(root: string, isWanted: (path: string) => boolean): Record<string, Beginning> {
  const files = filesBelow(root).map((file) => relative(root, file))
  return Object.fromEntries(
    files.filter(isWanted).map((path) => {
      const all = readFileSync(join(root, path))
      return [path, { bytes: all.length, sha256: digest(all) }]
    }),
  )
}

/** Paths of the files that are gone or do not begin any more as they did. That they grew is no loss. */
export function lostBelow(root: string, beginnings: Record<string, Beginning>): string[] {
  return Object.entries(beginnings).flatMap(([path, { bytes, sha256 }]) => {
    try {
      return digest(readFileSync(join(root, path)).subarray(0, bytes)) === sha256 ? [] : [path]
    } catch {
      return [path]
    }
  })
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}
