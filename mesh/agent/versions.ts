import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../../domain/digest.ts'

/** Of one file; the oldest goes first. */
const perPath = 10
/** Of all files together. */
const allBytes = 256 * 1024 * 1024

/** Keeps what a file held before it was written, readable by the agent alone, and answers where. On disk when it returns. */
export async function keepVersion(state: string, path: string, bytes: Buffer): Promise<string> {
  const directory = join(state, 'versions', sha256(path).slice(0, 32))
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await writeSynced(join(directory, 'path'), `${path}\n`)
  const moment = new Date().toISOString().replaceAll(':', '-')
  const kept = join(directory, `${moment}-${sha256(bytes).slice(0, 12)}-${randomBytes(2).toString('hex')}`)
  await writeSynced(kept, bytes)
  await prune(state, directory)
  return kept
}

async function writeSynced(path: string, content: string | Buffer): Promise<void> {
  const file = await open(path, 'w', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Names begin with the moment, so they sort by age. */
async function prune(state: string, directory: string): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name !== 'path').sort()
  for (const name of names.slice(0, -perPath)) await rm(join(directory, name), { force: true })

  const kept: { path: string; name: string; size: number }[] = []
  for (const folder of await readdir(join(state, 'versions'))) {
    for (const name of await readdir(join(state, 'versions', folder))) {
      const path = join(state, 'versions', folder, name)
      const found = name === 'path' ? null : await stat(path).catch(() => null)
      if (found) kept.push({ path, name, size: found.size })
    }
  }
  let total = kept.reduce((sum, { size }) => sum + size, 0)
  for (const { path, size } of kept.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, -1)) {
    if (total <= allBytes) break
    await rm(path, { force: true })
    total -= size
  }
}
