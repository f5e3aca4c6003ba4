import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { lockFile } from './node/program.ts'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'

/**
 * The lab operator's declared jobs, for the core API's `JOBS_FILE`: plain programs over the nodes'
 * directories. Each repairs a fault that no tool of Nightshift knows.
 */
const jobsOf = (labDir: string) => {
  const place = join(labDir, 'nodes', '{id}', 'var')
  return [
    {
      name: 'unlock-search',
      about: 'Removes the lock that an ended reindex left on the search of a web node',
      resources: { kind: 'node', pattern: 'node-web-.+' },
      run: { command: ['rm', '--force', '--verbose', '--', join(labDir, 'nodes', '{id}', lockFile)] },
      check: {
        command: ['find', place, '-name', 'search.lock', '-printf', 'would-remove:%p,written:%t'],
        noChanges: { unless: 'would-remove' },
      },
      timeoutSeconds: 30,
      proof: 'no lock is left on the search of the node',
    },
  ]
}

/** Writes the file and answers where it is. It may be there before the lab is. */
export function writeJobs(labDir: string): string {
  const file = join(labDir, 'jobs.yaml')
  mkdirSync(labDir, { recursive: true })
  writeFileSync(file, stringify({ jobs: jobsOf(labDir) }))
  return file
}

const lockOf = (lab: Lab, node: string): string => join(nodeDirectory(lab, node), lockFile)

/** A killed reindex left its lock: search answers errors from now on, and only its log says why. */
export function lockSearch(lab: Lab, node: string): void {
  ownDirectory(lab, join(nodeDirectory(lab, node), 'var'))
  writeForNode(lab, lockOf(lab, node), `${JSON.stringify({ by: 'reindex', pid: 4711, signal: 9 })}\n`)
}

export const unlockSearch = (lab: Lab, node: string): void => rmSync(lockOf(lab, node), { force: true })

export const isSearchLocked = (lab: Lab, node: string): boolean => existsSync(lockOf(lab, node))
