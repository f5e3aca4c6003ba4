import { randomBytes } from 'node:crypto'
import { type BigIntStats, constants } from 'node:fs'
import { type FileHandle, link, lstat, mkdir, open, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../../domain/digest.ts'
import { stripText } from '../../safety/redact.ts'
import { CapabilityError, errnoOf } from './capability.ts'
import { decoded, type OpenEntry, readPart, wholeBytes, within } from './walk.ts'

export function bytesOf(content: string, encoding: 'utf8' | 'base64'): Buffer {
  const bytes = Buffer.from(content, encoding)
  // Encodes the bytes again and compares, because Buffer silently drops invalid base64.
  if (encoding === 'base64' && bytes.toString('base64').replace(/=+$/, '') !== content.replace(/=+$/, ''))
    throw new CapabilityError('invalid_arguments', 'the content is not base64')
  return bytes
}

/** Reads a small file completely. Throws for a file above the limit, or that grows meanwhile. */
export async function readWhole(file: FileHandle, path: string, signal: AbortSignal): Promise<Buffer> {
  const { size } = await file.stat()
  const bytes = await readPart(file, 0, Math.min(size, wholeBytes) + 1, signal)
  if (size > wholeBytes || bytes.length > wholeBytes)
    throw new CapabilityError('failed', `${path} is larger than ${wholeBytes / 1024 / 1024} MiB`)
  // Reads one byte more than expected, to find out whether the file grew during the read.
  if (bytes.length > size) throw new CapabilityError('conflict', `${path} grew while it was read`)
  return bytes
}

/** The most characters of a diff on an approval card. */
const maxDiffCharacters = 100_000

/**
 * Returns a change of one file as a unified diff with three lines of context. `null` stands for a
 * missing file. Empty for equal contents. A sentence replaces the diff if the content is binary or
 * the diff too long.
 */
export async function unifiedDiff(
  path: string,
  before: Buffer | null,
  after: Buffer | null,
): Promise<{ diff: string; truncated: boolean }> {
  if (before && after?.equals(before)) return { diff: '', truncated: false }
  const [old, now] = [textOrNothing(before), textOrNothing(after)]
  if (old === null || now === null) return { diff: `Binary content of ${path} differs\n`, truncated: false }
  // Imports the package only in the first dry run, to save memory of an idle agent.
  const { createTwoFilesPatch, FILE_HEADERS_ONLY } = await import('diff')
  const diff = createTwoFilesPatch(
    before ? `a${path}` : '/dev/null',
    after ? `b${path}` : '/dev/null',
    old,
    now,
    undefined,
    undefined,
    { context: 3, timeout: 5_000, headerOptions: FILE_HEADERS_ONLY },
  )
  if (diff === undefined) return { diff: `${path} changes in too many places to show\n`, truncated: true }
  const note = stripText(now) === now.replaceAll('\r\n', '\n') ? '' : '[the new content has invisible characters]\n'
  if (diff.length <= maxDiffCharacters) return { diff: diff + note, truncated: false }
  const left = diff.length - maxDiffCharacters
  return {
    diff: `${diff.slice(0, maxDiffCharacters).toWellFormed()}\n[${left} characters more]\n${note}`,
    truncated: true,
  }
}

const textOrNothing = (bytes: Buffer | null) => (bytes ? decoded(bytes) : '')

/**
 * Replaces a file atomically: writes a temporary file beside it to disk, renames it, and writes the
 * directory to disk. A concurrent reader sees either the old or the new content. `former` is the
 * file for which the change was made; if another file or none has the name now, nothing is changed
 * (`conflict`). Null makes a new file, which replaces no existing file. Access lists and extended
 * attributes are not kept.
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

/** The most versions that are kept of one file. The oldest version is removed first. */
const perPath = 10
/** The most bytes of the kept versions of all files. */
const allBytes = 256 * 1024 * 1024

/**
 * Stores the earlier content of a file, readable only by the agent. Returns the path of the copy,
 * which is then on disk.
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

/** Removes the oldest versions above a limit. Names begin with the time, so they sort by age. */
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
