import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { lockFile } from './node/program.ts'
import { type Lab, nodeDirectory, ownDirectory, writeForNode } from './state.ts'

/**
 * Jobs that the lab's operator declares in `JOBS_FILE` of the core API. Each job is a plain program
 * that works on the nodes' directories. It repairs a fault that no tool of Nightshift repairs.
 */
const jobsOf = (labDir: string) => {
  const place = join(labDir, 'nodes', '{id}', 'var')
  return [
    {
      name: 'unlock-search',
      about: 'Removes the search lock that an ended reindex left on a web node',
      resources: { kind: 'node', pattern: 'node-web-.+' },
      run: { command: ['rm', '--force', '--verbose', '--', join(labDir, 'nodes', '{id}', lockFile)] },
      check: {
        command: ['find', place, '-name', 'search.lock', '-printf', 'would-remove:%p,written:%t'],
        noChanges: { unless: 'would-remove' },
      },
      timeoutSeconds: 30,
      proof: 'the search of the node has no lock left',
    },
  ]
}

/** Writes the file of jobs and returns its path. The file may be written before the lab exists. */
export function writeJobs(labDir: string): string {
  const file = join(labDir, 'jobs.yaml')
  mkdirSync(labDir, { recursive: true })
  writeFileSync(file, stringify({ jobs: jobsOf(labDir) }))
  return file
}

const lockOf = (lab: Lab, node: string): string => join(nodeDirectory(lab, node), lockFile)

/**
 * Leaves the lock of a killed reindex. Search then responds with errors, whose cause only the
 * search log shows.
 */
export function lockSearch(lab: Lab, node: string): void {
  ownDirectory(lab, join(nodeDirectory(lab, node), 'var'))
  writeForNode(lab, lockOf(lab, node), `${JSON.stringify({ by: 'reindex', pid: 4711, signal: 9 })}\n`)
}

export const unlockSearch = (lab: Lab, node: string): void => rmSync(lockOf(lab, node), { force: true })

export const isSearchLocked = (lab: Lab, node: string): boolean => existsSync(lockOf(lab, node))
