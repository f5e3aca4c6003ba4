import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { commandPrefix } from '../domain/own-command.ts'

/** A file that exists only in a checkout. A package and an image do not contain it. */
const lockfile = fileURLToPath(new URL('../package-lock.json', import.meta.url))
export const isCheckout = (): boolean => existsSync(lockfile)

/**
 * Returns the command that starts Nightshift here: with a container engine, with npm in a checkout,
 * or else with systemd.
 */
export function startLine(): string {
  if (commandPrefix(process.env).startsWith('docker ')) return 'docker compose up --detach'
  return isCheckout() ? 'npm start' : 'systemctl start nightshift-api nightshift-worker'
}
