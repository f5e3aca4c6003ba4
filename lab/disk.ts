import { createHash } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { processState } from './process.ts'
import { type Lab, nodeDirectory, ownDirectory } from './state.ts'
import type { NodePlan } from './topology.ts'

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

const directory = 'backup'
/** Of each period a backup takes this part. */
const partOfPeriod = 0.5

/** What the lab calls the process that backs a node up. */
export function backupOn(node: string): string {
  return `backup-${node}`
}

/** Begins to back a node up, again and again, as it is meant to be: each run is announced, and nothing is wrong. */
export async function startBackups(lab: Lab, node: string): Promise<void> {
  const root = nodeDirectory(lab, node)
  ownDirectory(lab, join(root, directory))
  const periodMs = lab.paceSeconds * 1_000
  await lab.children.start(backupOn(node), 'backup.ts', root, { periodMs, runMs: periodMs * partOfPeriod })
}

export async function endBackups(lab: Lab, node: string): Promise<void> {
  await lab.children.kill(backupOn(node))
  rmSync(join(nodeDirectory(lab, node), directory), { recursive: true, force: true })
}

/** When the backup that runs now was begun; null when none runs. */
export function backupSince(lab: Lab, node: string): string | null {
  return isBackedUp(lab, node) ? (read(lab, node, `${directory}/running`)?.trim() ?? null) : null
}

/** Does the process that backs the node up go on? */
export function isBackedUp(lab: Lab, node: string): boolean {
  const child = lab.children.get(backupOn(node))
  return child !== undefined && processState(child.pid) === 'running'
}

/** Tenants of the node of whose page the backup has no equal copy. */
export function notBackedUp(lab: Lab, { id, shard }: NodePlan): string[] {
  const { tenants } = lab.topology.shards.find((each) => each.id === shard)!
  return tenants.filter((tenant) => {
    const page = read(lab, id, `tenants/${tenant}/index.html`)
    return page === null || read(lab, id, `${directory}/${tenant}.html`) !== page
  })
}

function read(lab: Lab, node: string, file: string): string | null {
  try {
    return readFileSync(join(nodeDirectory(lab, node), file), 'utf8')
  } catch {
    return null
  }
}
