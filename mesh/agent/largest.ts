import type { BigIntStats, Dirent } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import { stripText } from '../../safety/strip.ts'
import { CapabilityError, errnoOf } from './operation.ts'
import { isSecret } from './roots.ts'
import { assertDirectory, entry, type OpenEntry, within } from './walk.ts'

/** Space on disk, everything below included. */
type Sized = { path: string; bytes: number }

export type Largest = {
  path: string
  bytes: number
  /** How many files and directories were counted: a file system may be out of these, not of space. */
  entries: number
  directories: (Sized & { entries: number })[]
  files: Sized[]
  /** Why not all of it was counted; null: it is all. */
  partial: string | null
  /** Directories right below the path that were not counted to their end. */
  not_counted: string[]
  /** Directories that the agent may not enter, that are held for secret or its own, or that are mounted there. */
  left_out: { not_allowed: number; secret: number; other_file_system: number }
}

export type Bounds = { entries: number; milliseconds: number; depth: number }
const usual: Bounds = { entries: 300_000, milliseconds: 12_000, depth: 100 }
const shown = 20
/** So many are asked at a time. */
const batch = 256

type Count = {
  signal: AbortSignal
  isOwn(path: string): boolean
  bounds: Bounds
  untilMs: number
  device: bigint
  /** Files with several names, which count once. */
  counted: Set<bigint>
  entries: number
  partial: string | null
  directories: Largest['directories']
  files: Sized[]
  left_out: Largest['left_out']
}

/**
 * What takes the space below a directory that is held open, on its own file system, following no link. Where it ends early it says so: then
 * every number is a lower bound.
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
    directories: [],
    files: [],
    left_out: { not_allowed: 0, secret: 0, other_file_system: 0 },
  }
  const notCounted: string[] = []
  const { bytes, entries } = await countBelow(held, 0, count, notCounted)
  // The path itself holds all of them.
  const directories = largest(count.directories.filter(({ path }) => path !== held.path))
  return {
    path: held.path,
    bytes,
    entries,
    directories: directories.map(shownPath),
    files: largest(count.files).map(shownPath),

    partial: count.partial,
    not_counted: notCounted.slice(0, shown),
    left_out: count.left_out,
  }
}

const shownPath = <T extends Sized>(one: T): T => ({ ...one, path: stripText(one.path, { keepNewlines: false }) })

async function countBelow(
  directory: OpenEntry,
  depth: number,
  count: Count,
  notCounted: string[] | null,
): Promise<{ bytes: number; entries: number }> {
  let bytes = onDisk(directory.stat)
  const before = count.entries
  const below: string[] = []
  for await (const names of namesIn(directory, count)) {
    const stats = await Promise.all(names.map((name) => statOf(directory, name)))
    for (const [index, stat] of stats.entries()) {
      if (stat === null) continue
      const name = names[index]!.toString('utf8')
      const path = `${directory.path === '/' ? '' : directory.path}/${name}`
      if (stat.isDirectory()) {
        if (isCounted(path, stat, count)) below.push(name)
        continue
      }
      if (count.isOwn(path)) continue
      count.entries += 1
      if (stat.nlink > 1n) {
        if (count.counted.has(stat.ino)) continue
        count.counted.add(stat.ino)
      }
      bytes += onDisk(stat)
      keep(count.files, { path, bytes: onDisk(stat) })
    }
  }
  for (const name of below) {
    if (count.partial === null) bytes += await enter(directory, name, depth, count)
    // It ended in there, or before.
    if (count.partial !== null) notCounted?.push(stripText(name, { keepNewlines: false }))
  }
  const found = { bytes, entries: count.entries - before }
  keep(count.directories, { path: directory.path, ...found })
  return found
}

function isCounted(path: string, { dev }: BigIntStats, { device, left_out, isOwn }: Count): boolean {
  if (dev !== device) left_out.other_file_system += 1
  else if (isOwn(path) || isSecret(path)) left_out.secret += 1
  else return true
  return false
}

/** Bytes of a directory below; 0 for one that has gone or is closed to the agent. */
async function enter(directory: OpenEntry, name: string, depth: number, count: Count): Promise<number> {
  if (depth >= count.bounds.depth) {
    count.partial = `stopped at a depth of ${depth} directories`
    return 0
  }
  let held: OpenEntry | null = null
  try {
    held = await entry(directory, name)
    // Another thing may stand there by now.
    if (!held?.stat.isDirectory() || held.stat.dev !== count.device) return 0
    count.entries += 1
    return (await countBelow(held, depth + 1, count, null)).bytes
  } catch (error) {
    if (!(error instanceof CapabilityError) && errnoOf(error) === null) throw error
    count.left_out.not_allowed += 1
    return 0
  } finally {
    await held?.handle.close()
  }
}

/** Names as bytes, some at a time, until a bound is reached. */
async function* namesIn({ handle }: OpenEntry, count: Count): AsyncGenerator<Buffer[]> {
  // TypeScript's types know names as text only; `buffer` is documented.
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
    // It has gone since its name was read, or the agent may not look.
    return null
  }
}

/** Blocks of 512 bytes, whatever the file system's own are. */
const onDisk = ({ blocks }: BigIntStats) => Number(blocks) * 512

/** Keeps a short list of the largest without sorting each time. */
function keep<T extends Sized>(list: T[], one: T): void {
  list.push(one)
  if (list.length >= shown * 50) list.splice(0, list.length, ...largest(list))
}

const largest = <T extends Sized>(list: T[]): T[] =>
  list.toSorted((a, b) => b.bytes - a.bytes || (a.path < b.path ? -1 : 1)).slice(0, shown)
