import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { processState } from './process.ts'
import { type Lab, nodeDirectory, ownDirectory } from './state.ts'
import type { NodePlan } from './topology.ts'

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
