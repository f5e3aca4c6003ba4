import { createHash } from 'node:crypto'
import { type BigIntStats, constants } from 'node:fs'
import { type FileHandle, open, readlink, statfs } from 'node:fs/promises'
import { CapabilityError, errnoOf } from './capability.ts'
import type { ManifestPath } from './manifest.ts'

/**
 * Walks to a path without following a symbolic link. Node has no openat, so each directory is held
 * open, and the next name is opened through `/proc/self/fd/N/name`. The kernel resolves this path
 * from the held directory, even after the directory was moved. Each file is first opened with
 * O_PATH, which touches neither a device nor a FIFO, and checked. The content is then opened
 * through the same descriptor, so a file that is swapped in meanwhile is never reached.
 */

/** The value on Linux, for every architecture that Node runs on. Node does not export it. */
const O_PATH = 0o10000000
const procMagic = 0x9fa0

/** An open file or directory, its kind, and the directory that contains it (null for `/`). */
export type OpenEntry = { handle: FileHandle; stat: BigIntStats; parent: OpenEntry | null; name: string; path: string }

/**
 * Walks to a path and passes on the file, directory or symbolic link there. Follows no symbolic
 * link. Closes all descriptors afterwards.
 */
export async function withEntryAt<T>(place: ManifestPath, act: (held: OpenEntry) => Promise<T>): Promise<T> {
  const open: FileHandle[] = []
  try {
    let held = await root(open)
    for (const [index, name] of place.segments.entries()) {
      if (index > 0) assertDirectory(held)
      held = await step(held, name, open)
    }
    await assertThere(held)
    return await act(held)
  } finally {
    for (const handle of open.reverse()) await handle.close()
  }
}

/** Walks to the directory that contains the path's last name. The name itself need not exist. */
export async function withParentOf<T>(
  place: ManifestPath,
  act: (directory: OpenEntry, name: string) => Promise<T>,
): Promise<T> {
  const name = place.segments.at(-1)
  if (name === undefined) throw new CapabilityError('invalid_arguments', '/ is not a file')
  const segments = place.segments.slice(0, -1)
  return withEntryAt({ ...place, path: `/${segments.join('/')}`, segments }, (directory) => {
    assertDirectory(directory)
    return act(directory, name)
  })
}

/**
 * Opens a name in a held directory. The caller closes the entry. Null for a name that does not
 * exist.
 */
export async function openEntry(directory: OpenEntry, name: string): Promise<OpenEntry | null> {
  const open: FileHandle[] = []
  try {
    return await step(directory, name, open)
  } catch (error) {
    for (const handle of open) await handle.close()
    if (error instanceof CapabilityError && error.code === 'not_found') return null
    throw error
  }
}

async function root(opened: FileHandle[]): Promise<OpenEntry> {
  const handle = await open('/', O_PATH | constants.O_DIRECTORY)
  opened.push(handle)
  return { handle, stat: await handle.stat({ bigint: true }), parent: null, name: '', path: '/' }
}

async function step(directory: OpenEntry, name: string, opened: FileHandle[]): Promise<OpenEntry> {
  const path = `${directory.path === '/' ? '' : directory.path}/${name}`
  let handle: FileHandle
  try {
    handle = await open(within(directory.handle, name), O_PATH | constants.O_NOFOLLOW)
  } catch (error) {
    const code = errnoOf(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new CapabilityError('not_found', `there is no ${path}`)
    if (code === 'EACCES') throw new CapabilityError('failed', `the agent may not enter ${directory.path}`)
    throw error
  }
  opened.push(handle)
  return { handle, stat: await handle.stat({ bigint: true }), parent: directory, name, path }
}

/**
 * Returns a path for a name in a held directory, for calls that do not follow a symbolic link at
 * the end.
 */
export const within = (directory: FileHandle, name: string) => `/proc/self/fd/${directory.fd}/${name}`

export function assertDirectory({ stat, path }: OpenEntry): void {
  if (stat.isSymbolicLink())
    throw new CapabilityError('outside_roots', `${path} is a symbolic link, and the agent follows none`)
  if (!stat.isDirectory()) throw new CapabilityError('not_found', `${path} is not a directory`)
}

/** Throws if the kernel reports another path for the descriptor than the intended path. */
async function assertThere({ handle, path }: OpenEntry): Promise<void> {
  if ((await readlink(`/proc/self/fd/${handle.fd}`)) !== path)
    throw new CapabilityError('conflict', `${path} was moved while the agent opened it`)
}

/** Opens a regular file for reading, and refuses any other kind. The caller closes the file. */
export async function openContent({ stat, path, handle, parent }: OpenEntry): Promise<FileHandle> {
  if (stat.isSymbolicLink())
    throw new CapabilityError('outside_roots', `${path} is a symbolic link, and the agent follows none`)
  if (!stat.isFile()) throw new CapabilityError('invalid_arguments', `${path} is a ${kindOf(stat)}, not a file`)
  if (stat.nlink > 1n && !(parent && isOwnLink(stat, parent.stat))) {
    throw new CapabilityError('outside_roots', `${path} has another name (hard link), which may be outside the roots`)
  }
  const reach = `/proc/self/fd/${handle.fd}`
  if ((await statfs(reach)).type === procMagic)
    throw new CapabilityError('outside_roots', `${path} belongs to a /proc file system`)
  return open(reach, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
}

/**
 * Whether a file with a second name is safe to read. A user without the right to read a file
 * outside of the roots may have linked it. Safe if the directory's owner also owns the file and no
 * other user can write the directory, because the linking user could then read the file anyway.
 */
const isOwnLink = (file: BigIntStats, directory: BigIntStats) =>
  file.uid === directory.uid && (directory.mode & 0o022n) === 0n

type FileKind = 'file' | 'directory' | 'link' | 'fifo' | 'socket' | 'device'

export function kindOf(stat: BigIntStats): FileKind {
  if (stat.isFile()) return 'file'
  if (stat.isDirectory()) return 'directory'
  if (stat.isSymbolicLink()) return 'link'
  if (stat.isFIFO()) return 'fifo'
  return stat.isSocket() ? 'socket' : 'device'
}

/** Formats permission bits, such as `0644`. */
export const modeOf = (stat: BigIntStats) =>
  `0${Number(stat.mode & 0o7777n)
    .toString(8)
    .padStart(3, '0')}`

type Text = { content: string; encoding: 'utf8' | 'base64' }

/** Encodes bytes as text if they are UTF-8, otherwise in base64. Drops a cut character. */
export function textOf(bytes: Buffer, cut: boolean): Text & { bytes: number } {
  for (let short = 0; short <= (cut ? 3 : 0) && short <= bytes.length; short++) {
    const part = bytes.subarray(0, bytes.length - short)
    const content = decoded(part)
    if (content !== null) return { content, encoding: 'utf8', bytes: part.length }
  }
  return { content: bytes.toString('base64'), encoding: 'base64', bytes: bytes.length }
}

/** Returns the text of valid UTF-8 without NUL. Null for any other bytes. */
export function decoded(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Reads up to `limit` bytes from a position in a file, and fewer at its end. */
export async function readPart(file: FileHandle, offset: number, limit: number, signal: AbortSignal): Promise<Buffer> {
  const bytes = Buffer.alloc(limit)
  let length = 0
  while (length < limit) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(bytes, length, Math.min(limit - length, 1024 * 1024), offset + length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  return bytes.subarray(0, length)
}

/** The largest file that is hashed and rewritten. Nobody can review a change of a larger file. */
export const wholeBytes = 16 * 1024 * 1024

/** Computes the SHA-256 of a file in pieces. Null for a file that is too large. */
export async function digestOf(file: FileHandle, size: bigint, signal: AbortSignal): Promise<string | null> {
  if (size > BigInt(wholeBytes)) return null
  const hash = createHash('sha256')
  const piece = Buffer.alloc(256 * 1024)
  for (let at = 0; at <= wholeBytes; ) {
    signal.throwIfAborted()
    const { bytesRead } = await file.read(piece, 0, piece.length, at)
    if (bytesRead === 0) break
    hash.update(piece.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest('hex')
}
