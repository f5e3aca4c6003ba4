import { randomBytes } from 'node:crypto'
import { type BigIntStats, constants } from 'node:fs'
import { type FileHandle, link, lstat, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../../domain/digest.ts'
import { CapabilityError, errnoOf } from './operation.ts'
import { type OpenEntry, within } from './walk.ts'

/**
 * Puts a file in place at once: a temporary file beside it, on disk, then renamed, then the
 * directory on disk. A process that reads meanwhile sees the old content or the new. `former` is
 * what was there when the change was made up: when it is not there any more, nothing is changed
 * (`conflict`); null makes a new file and never replaces one. Access lists and extended attributes
 * are not kept.
 */
export async function replace(
  directory: OpenEntry,
  name: string,
  bytes: Buffer,
  mode: number,
  former: BigIntStats | null,
): Promise<void> {
  const temporary = within(directory.handle, `.nightshift-${randomBytes(8).toString('hex')}`)
  const target = within(directory.handle, name)
  try {
    await writeOut(temporary, bytes, mode, former)
    if (former) {
      await assertSame(target, former, directory, name)
      await rename(temporary, target)
    } else {
      await link(temporary, target)
      await unlink(temporary)
    }
  } catch (error) {
    await unlink(temporary).catch(() => {})
    if (errnoOf(error) === 'EEXIST') throw changed(directory, name)
    throw error
  }
  await syncDirectory(directory.handle)
}

async function writeOut(temporary: string, bytes: Buffer, mode: number, former: BigIntStats | null): Promise<void> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    await file.writeFile(bytes)
    const own = await file.stat({ bigint: true })
    if (former && (own.uid !== former.uid || own.gid !== former.gid))
      await giveTo(file, Number(former.uid), Number(former.gid))
    await file.chmod(mode)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function giveTo(file: FileHandle, uid: number, gid: number): Promise<void> {
  try {
    await file.chown(uid, gid)
  } catch {
    throw new CapabilityError('failed', `the file belongs to ${uid}:${gid}, and the agent may not give it back to them`)
  }
}

async function assertSame(target: string, former: BigIntStats, directory: OpenEntry, name: string): Promise<void> {
  const now = await lstat(target, { bigint: true }).catch(() => null)
  const same =
    now &&
    now.ino === former.ino &&
    now.dev === former.dev &&
    now.size === former.size &&
    now.mtimeNs === former.mtimeNs &&
    now.ctimeNs === former.ctimeNs
  if (!same) throw changed(directory, name)
}

const changed = (directory: OpenEntry, name: string) =>
  new CapabilityError('conflict', `${directory.path === '/' ? '' : directory.path}/${name} was changed meanwhile`)

async function syncDirectory(directory: FileHandle): Promise<void> {
  const opened = await open(`/proc/self/fd/${directory.fd}`, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    await opened.sync()
  } finally {
    await opened.close()
  }
}

/** Of one file; the oldest goes first. */
const perPath = 10
/** Of all files together. */
const allBytes = 256 * 1024 * 1024

/**
 * Keeps what a file held before it was written, readable by the agent alone, and answers where. On
 * disk when it returns.
 */
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
