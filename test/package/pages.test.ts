import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { copyPages } from '../../package/pages.ts'
import { temporaryDirectory } from '../support/directory.ts'

const root = join(import.meta.dirname, '../..')
/** Folders whose words people read where the package runs. */
const speaking = [
  'api',
  'cli',
  'clients',
  'config',
  'db',
  'domain',
  'effects',
  'mesh',
  'notify',
  'package',
  'start',
  'worker',
]

test('each page that a message, a unit or the script names is in the package, without a network', () => {
  const place = temporaryDirectory()
  try {
    copyPages(join(root, 'docs'), join(place.path, 'docs'))
    const files = speaking.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(root, folder, file)),
    )
    const texts = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file, 'utf8'))
    const named = new Set(texts.flatMap((text) => text.match(/\bdocs\/[a-z-]+\/[a-z-]+\.md\b/g) ?? []))
    expect(named.size).toBeGreaterThan(10)
    expect([...named].filter((page) => !existsSync(join(place.path, page)))).toEqual([])
    expect(existsSync(join(place.path, 'docs/images'))).toBe(false)
  } finally {
    place.remove()
  }
})
