import { createHash } from 'node:crypto'
import { type BigIntStats, constants } from 'node:fs'
import { type FileHandle, open, readlink, statfs } from 'node:fs/promises'
import { CapabilityError, errnoOf } from './capability.ts'
import type { ManifestPath } from './manifest.ts'

/**
 * Going to a path without following a link. Node has no openat: each directory is held open, and
 * the next name is opened through `/proc/self/fd/N/name`, which the kernel resolves from the
 * directory that is held, wherever its name points by now. Everything is first opened with O_PATH,
 * which touches neither a device nor a FIFO, and asked what it is; the content is then opened
 * through that same descriptor. So nothing that is swapped in between can be reached.
 */

/** Linux, on every architecture that Node runs on. Node does not name it. */
const O_PATH = 0o10000000
const procMagic = 0x9fa0

/** Something that is held open, what it is, and the directory that holds it (null for `/`). */
export type OpenEntry = { handle: FileHandle; stat: BigIntStats; parent: OpenEntry | null; name: string; path: string }

/**
 * Goes to a path and hands over what is there, links included, but none is followed. Everything is
 * closed afterwards.
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

/** Goes to the directory that holds the last name of the path; the name itself need not exist. */
export async function withParentOf<T>(
  place: ManifestPath,
  act: (directory: OpenEntry, name: string) => Promise<T>,
): Promise<T> {
  const name = place.segments.at(-1)
  if (name === undefined) throw new CapabilityError('invalid_arguments', '/ itself is no file')
  const segments = place.segments.slice(0, -1)
  return withEntryAt({ ...place, path: `/${segments.join('/')}`, segments }, (directory) => {
    assertDirectory(directory)
    return act(directory, name)
  })
}

/**
 * One name further, from a directory that is held. The caller closes it. Null when there is nothing
 * of that name.
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
 * A name in a directory that is held, as a path for calls that do not follow links at their end.
 */
export const within = (directory: FileHandle, name: string) => `/proc/self/fd/${directory.fd}/${name}`

export function assertDirectory({ stat, path }: OpenEntry): void {
  if (stat.isSymbolicLink()) throw new CapabilityError('outside_roots', `${path} is a link, and links are not followed`)
  if (!stat.isDirectory()) throw new CapabilityError('not_found', `${path} is not a directory`)
}

/** The kernel's own word for where the descriptor is: it must be where we meant to go. */
async function assertThere({ handle, path }: OpenEntry): Promise<void> {
  if ((await readlink(`/proc/self/fd/${handle.fd}`)) !== path)
    throw new CapabilityError('conflict', `${path} was moved while it was opened`)
}

/**
 * Opens the content of a regular file for reading. The caller closes it. Refuses whatever else is
 * there.
 */
export async function openContent({ stat, path, handle, parent }: OpenEntry): Promise<FileHandle> {
  if (stat.isSymbolicLink()) throw new CapabilityError('outside_roots', `${path} is a link, and links are not followed`)
  if (!stat.isFile()) throw new CapabilityError('invalid_arguments', `${path} is a ${kindOf(stat)}, not a file`)
  if (stat.nlink > 1n && !(parent && isOwnLink(stat, parent.stat))) {
    throw new CapabilityError('outside_roots', `${path} has another name, which may be outside the roots`)
  }
  const reach = `/proc/self/fd/${handle.fd}`
  if ((await statfs(reach)).type === procMagic) throw new CapabilityError('outside_roots', `${path} belongs to a /proc`)
  return open(reach, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
}

/**
 * A file with a second name may be one from outside the roots that a user without the right to read
 * it linked into one. That cannot be so where the directory's owner owns the file too and no other
 * user can write the directory: then the user who made the link could read the file anyway.
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

/** Permission bits as people write them: `0644`. */
export const modeOf = (stat: BigIntStats) =>
  `0${Number(stat.mode & 0o7777n)
    .toString(8)
    .padStart(3, '0')}`

type Text = { content: string; encoding: 'utf8' | 'base64' }

/**
 * Bytes as JSON can carry them: as text where they are text, else in base64. A character that is
 * cut at the end is left off.
 */
export function textOf(bytes: Buffer, cut: boolean): Text & { bytes: number } {
  for (let short = 0; short <= (cut ? 3 : 0) && short <= bytes.length; short++) {
    const part = bytes.subarray(0, bytes.length - short)
    const content = decoded(part)
    if (content !== null) return { content, encoding: 'utf8', bytes: part.length }
  }
  return { content: bytes.toString('base64'), encoding: 'base64', bytes: bytes.length }
}

/** The text of valid UTF-8 without NUL; null for anything else. */
export function decoded(bytes: Buffer): string | null {
  if (bytes.includes(0)) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

/** Reads up to `limit` bytes from a place of a file; fewer when it ends. */
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

/**
 * Files up to this are hashed and rewritten as a whole; a change of a larger one cannot be
 * reviewed.
 */
export const wholeBytes = 16 * 1024 * 1024

/** SHA-256 of a whole file in pieces; null for one that is too large to be worth it. */
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
