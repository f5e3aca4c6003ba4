import { cpSync, statSync } from 'node:fs'
import { basename } from 'node:path'

/** Copies the pages that messages name, for a host that no network leads to. Their pictures take four times as much, and are left out. */
export function copyPages(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => (statSync(path).isDirectory() ? basename(path) !== 'images' : path.endsWith('.md')),
  })
}
