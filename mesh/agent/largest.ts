import type { BigIntStats, Dirent } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { stripText } from '../../safety/redact.ts'
import { CapabilityError, errnoOf } from './capability.ts'
import { isSecret } from './manifest.ts'
import { assertDirectory, type OpenEntry, openEntry, within } from './walk.ts'

/** The space of a file on disk, or of a directory with everything below it. */
type Sized = { path: string; bytes: number }

export type Largest = {
  path: string
  bytes: number
  /**
   * Number of files and directories, because a file system may run out of inodes instead of space.
   */
  entries: number
  directories: (Sized & { entries: number })[]
  files: Sized[]
  /** Why the count ended early. Null if the count is complete. */
  partial: string | null
  /** Directories directly below the path that were not counted to their end. */
  not_counted: string[]
  /**
   * Numbers of directories that were left out: the agent may not enter them, they are secret or the
   * agent's, or they are mounts.
   */
  left_out: { not_allowed: number; kept_back: number; other_file_system: number }
}

type Bounds = { entries: number; milliseconds: number; depth: number }
const usual: Bounds = { entries: 300_000, milliseconds: 12_000, depth: 100 }
const shown = 20
/** Number of directory entries that are read in parallel. */
const batch = 256

type Count = {
  signal: AbortSignal
  isOwn(path: string): boolean
  bounds: Bounds
  untilMs: number
  device: bigint
  /** Inodes of files with several names. Each of these files counts once. */
  counted: Set<bigint>
  entries: number
  partial: string | null
  files: Sized[]
  left_out: Largest['left_out']
}

/**
 * Sums the space below an open directory, only on its file system and without following symbolic
 * links. Counts directories by depth. A count that ends early says so in `partial`: every number is
 * then a lower bound, and no directory was skipped for a deeper directory.
 */
export async function findLargest(
  held: OpenEntry,
  { signal, isOwn, bounds = usual }: { signal: AbortSignal; isOwn(path: string): boolean; bounds?: Bounds },
): Promise<Largest> {
  assertDirectory(held)
  const count: Count = {
    signal,
    isOwn,
    bounds,
    untilMs: performance.now() + bounds.milliseconds,
    device: held.stat.dev,
    counted: new Set(),
    entries: 0,
    partial: null,
    files: [],
    left_out: { not_allowed: 0, kept_back: 0, other_file_system: 0 },
  }
  const { found, unfinished } = await countByDepth(held, count)
  addUp(found)
  const [top, ...below] = found
  return {
    path: held.path,
    bytes: top?.bytes ?? 0,
    entries: top?.entries ?? 0,
    directories: largest(below).map(({ path, bytes, entries }) => shownPath({ path, bytes, entries })),
    files: largest(count.files).map(shownPath),
    partial: count.partial,
    not_counted: rightBelow(unfinished).slice(0, shown),
    left_out: count.left_out,
  }
}

const shownPath = <T extends Sized>(one: T): T => ({ ...one, path: stripText(one.path, { keepNewlines: false }) })

type Directory = Sized & { parent: Directory | null; name: string; depth: number; entries: number }

/**
 * Counts all directories, each after its parent. `unfinished` lists directories that were not
 * counted to their end.
 */
async function countByDepth(held: OpenEntry, count: Count): Promise<{ found: Directory[]; unfinished: Directory[] }> {
  const top = { parent: null, name: '', path: held.path, depth: 0, bytes: onDisk(held.stat), entries: 0 }
  const found: Directory[] = [top]
  const way: Way = { top, held, last: top, handles: [] }
  let next = 0
  try {
    for (; next < found.length && count.partial === null; next += 1) await visit(found[next]!, found, way, count)
  } finally {
    await leave(way)
  }
  // Reports the directory that was begun last, and all later ones, as unfinished.
  return { found, unfinished: count.partial === null ? [] : found.slice(Math.max(0, next - 1)) }
}

/** The open directories from the top down to the directory whose children are counted. */
type Way = { top: Directory; held: OpenEntry; last: Directory; handles: OpenEntry[] }

async function visit(directory: Directory, found: Directory[], way: Way, count: Count): Promise<void> {
  const { parent, depth, name } = directory
  if (parent === null) return await countIn(directory, way.held, found, count)
  if (depth > count.bounds.depth) {
    count.partial = `stopped at a depth of ${count.bounds.depth} directories`
    return
  }
  let own: OpenEntry | null = null
  try {
    const around = await goTo(parent, way, count)
    own = around && (await openEntry(around, name))
    // Ignores another file or directory that meanwhile has this name.
    if (!own?.stat.isDirectory() || own.stat.dev !== count.device) return
    count.entries += 1
    parent.entries += 1
    directory.bytes += onDisk(own.stat)
    await countIn(directory, own, found, count)
  } catch (error) {
    if (!(error instanceof CapabilityError) && errnoOf(error) === null) throw error
    count.left_out.not_allowed += 1
  } finally {
    await own?.handle.close()
  }
}

/** Opens a directory, name by name from the top. Null if a name is no directory here any more. */
async function goTo(directory: Directory, way: Way, { device }: Count): Promise<OpenEntry | null> {
  if (way.last === directory) return way.handles.at(-1) ?? way.held
  await leave(way)
  const names: string[] = []
  for (let each = directory; each.parent !== null; each = each.parent) names.unshift(each.name)
  for (const name of names) {
    const next = await openEntry(way.handles.at(-1) ?? way.held, name)
    if (next) way.handles.push(next)
    if (!next?.stat.isDirectory() || next.stat.dev !== device) return null
  }
  way.last = directory
  return way.handles.at(-1) ?? way.held
}

async function leave(way: Way): Promise<void> {
  way.last = way.top
  for (const { handle } of way.handles.splice(0).reverse()) await handle.close()
}

/** Counts the files of one directory, and records its subdirectories for later. */
async function countIn(directory: Directory, held: OpenEntry, found: Directory[], count: Count): Promise<void> {
  for await (const names of namesIn(held, count)) {
    const stats = await Promise.all(names.map((name) => statOf(held, name)))
    for (const [index, stat] of stats.entries()) {
      if (stat === null) continue
      const name = names[index]!.toString('utf8')
      const path = `${held.path === '/' ? '' : held.path}/${name}`
      if (stat.isDirectory()) {
        const below = { parent: directory, name, path, depth: directory.depth + 1, bytes: 0, entries: 0 }
        if (isCounted(path, stat, count)) found.push(below)
        continue
      }
      if (count.isOwn(path)) continue
      count.entries += 1
      directory.entries += 1
      if (stat.nlink > 1n) {
        if (count.counted.has(stat.ino)) continue
        count.counted.add(stat.ino)
      }
      directory.bytes += onDisk(stat)
      keep(count.files, { path, bytes: onDisk(stat) })
    }
  }
}

/** Adds each directory's space and number of entries to its parent. */
function addUp(found: readonly Directory[]): void {
  for (const { parent, bytes, entries } of found.toReversed())
    if (parent) {
      parent.bytes += bytes
      parent.entries += entries
    }
}

/** Lists the directories directly below the top that contain unfinished directories, by name. */
function rightBelow(unfinished: readonly Directory[]): string[] {
  const names = unfinished.flatMap((directory) => {
    let each = directory
    while (each.parent && each.depth > 1) each = each.parent
    return each.depth === 1 ? [stripText(each.name, { keepNewlines: false })] : []
  })
  return [...new Set(names)]
}

function isCounted(path: string, { dev }: BigIntStats, { device, left_out, isOwn }: Count): boolean {
  if (dev !== device) left_out.other_file_system += 1
  else if (isOwn(path) || isSecret(path)) left_out.kept_back += 1
  else return true
  return false
}

/** Reads a directory's names as bytes, in batches, until a limit of the count is reached. */
async function* namesIn({ handle }: OpenEntry, count: Count): AsyncGenerator<Buffer[]> {
  // Casts the encoding: TypeScript declares names only as text, but Node documents `buffer`.
  const listing = await opendir(`/proc/self/fd/${handle.fd}`, { encoding: 'buffer' as BufferEncoding, bufferSize: 256 })
  let names: Buffer[] = []
  for await (const { name } of listing as AsyncIterable<Dirent<Buffer>>) {
    names.push(name)
    if (names.length < batch) continue
    if (isOver(count)) return
    yield names
    names = []
  }
  if (names.length > 0 && !isOver(count)) yield names
}

function isOver(count: Count): boolean {
  count.signal.throwIfAborted()
  const { bounds, entries } = count
  if (entries >= bounds.entries) count.partial ??= `stopped after ${bounds.entries} entries`
  else if (performance.now() > count.untilMs) count.partial ??= `stopped after ${bounds.milliseconds / 1_000} s`
  return count.partial !== null
}

async function statOf(directory: OpenEntry, name: Buffer): Promise<BigIntStats | null> {
  try {
    return await lstat(Buffer.concat([Buffer.from(within(directory.handle, '')), name]), { bigint: true })
  } catch {
    // Leaves out an entry that was removed after its name was read, or that the agent may not read.
    return null
  }
}

/** Returns the space of a file on disk in bytes. Blocks have 512 bytes in every file system. */
const onDisk = ({ blocks }: BigIntStats) => Number(blocks) * 512

/** Keeps a short list of the largest entries without sorting each time. */
function keep<T extends Sized>(list: T[], one: T): void {
  list.push(one)
  if (list.length >= shown * 50) list.splice(0, list.length, ...largest(list))
}

const largest = <T extends Sized>(list: T[]): T[] =>
  list.toSorted((a, b) => b.bytes - a.bytes || (a.path < b.path ? -1 : 1)).slice(0, shown)
