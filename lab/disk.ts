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
    return createHash('sha256').update(readFileSync(file)).digest('hex')
  } catch {
    return 'missing'
  }
}
