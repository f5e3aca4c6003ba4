import { cpSync, statSync } from 'node:fs'
import { basename } from 'node:path'

/**
 * Copies the documentation pages that messages name, for a host without a network. Leaves out the
 * pictures of these pages, which are four times as large.
 */
export function copyPages(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => (statSync(path).isDirectory() ? basename(path) !== 'images' : path.endsWith('.md')),
  })
}
