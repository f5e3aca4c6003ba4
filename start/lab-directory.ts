import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { nodeAccount } from '../lab/account.ts'
import { canEnter } from './account.ts'
import { elsewhere } from './elsewhere.ts'

/**
 * Where the lab keeps its machines: beside the state, since what is in there holds secrets and no device shows that unasked. Where
 * root starts in a place that is closed to others, as its home is, agents on nodes could not reach their own files there: then
 * elsewhere, which the state directory names.
 */
export function labDirectory(stateDir: string): string {
  const note = join(stateDir, 'lab-location')
  if (existsSync(note)) return readFileSync(note, 'utf8').trim()
  const account = nodeAccount()
  if (!account || canEnter(dirname(stateDir), account)) return `${stateDir}-lab`
  const made = join(elsewhere(stateDir), 'lab')
  writeFileSync(note, `${made}\n`)
  return made
}
