import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { commandPrefix } from '../domain/own-command.ts'

/** Stands in a checkout alone: a package and an image come without it. */
const lockfile = fileURLToPath(new URL('../package-lock.json', import.meta.url))
export const isCheckout = (): boolean => existsSync(lockfile)

/** The starter of Nightshift here: a container engine, npm in a checkout, else systemd. */
export function startLine(): string {
  if (commandPrefix(process.env).startsWith('docker ')) return 'docker compose up --detach'
  return isCheckout() ? 'npm start' : 'systemctl start nightshift-api nightshift-worker'
}
