import { chmodSync, mkdirSync, mkdtempSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'

/** A new directory for what cannot be kept beside a state directory, since that is closed to the user who works in it. */
export function elsewhere(stateDir: string): string {
  mkdirSync('/var/lib/nightshift', { recursive: true, mode: 0o755 })
  const made = mkdtempSync(`/var/lib/nightshift/${basename(dirname(stateDir)) || 'root'}-`)
  chmodSync(made, statSync(made).mode | 0o011)
  return made
}
