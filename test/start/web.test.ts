import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { ensureWeb } from '../../start/web.ts'
import { temporaryDirectory } from '../support/directory.ts'

/** A checkout in which the bundler is a script that only writes where it was told to. */
function checkout() {
  const { path, remove } = temporaryDirectory()
  mkdirSync(join(path, 'web'), { recursive: true })
  mkdirSync(join(path, 'domain'))
  mkdirSync(join(path, 'node_modules', 'vite', 'bin'), { recursive: true })
  const bundler = `import { mkdirSync, writeFileSync } from 'node:fs'
const out = process.argv[process.argv.indexOf('--outDir') + 1]
if (process.env.BROKEN) { console.error('main.tsx: no such thing'); process.exit(1) }
mkdirSync(out); writeFileSync(out + '/index.html', 'built')`
  writeFileSync(join(path, 'node_modules', 'vite', 'bin', 'vite.js'), bundler)
  writeFileSync(join(path, 'node_modules', 'vite', 'package.json'), '{ "type": "module" }')
  writeFileSync(join(path, 'web', 'main.tsx'), '')
  writeFileSync(join(path, 'domain', 'card-sections.ts'), '')
  writeFileSync(join(path, 'package.json'), '{}')
  writeFileSync(join(path, 'package-lock.json'), '{}')
  return { path, remove }
}

const changed = (file: string, inSeconds: number) => {
  const at = Date.now() / 1000 + inSeconds
  utimesSync(file, at, at)
}

test('pages are built if they are missing or older than their sources, and not again', async () => {
  const { path, remove } = checkout()
  expect(await ensureWeb(path)).toBe(true)
  changed(join(path, 'web', 'dist', 'index.html'), 10)
  expect(await ensureWeb(path)).toBe(false)
  for (const source of ['web/main.tsx', 'domain/card-sections.ts', 'package.json', 'package-lock.json']) {
    changed(join(path, source), 20)
    expect([source, await ensureWeb(path)]).toEqual([source, true])
    changed(join(path, 'web', 'dist', 'index.html'), 10)
    changed(join(path, source), 0)
    expect([source, await ensureWeb(path)]).toEqual([source, false])
  }
  remove()
})

test("pages that cannot be built are reported with the bundler's error, and the earlier ones stay", async () => {
  const { path, remove } = checkout()
  await ensureWeb(path)
  changed(join(path, 'web', 'main.tsx'), 20)
  process.env.BROKEN = '1'
  try {
    await expect(ensureWeb(path)).rejects.toThrow('main.tsx: no such thing')
    delete process.env.BROKEN
    changed(join(path, 'web', 'main.tsx'), -20)
    changed(join(path, 'package-lock.json'), -20)
    expect(await ensureWeb(path)).toBe(false)
  } finally {
    delete process.env.BROKEN
    remove()
  }
})
