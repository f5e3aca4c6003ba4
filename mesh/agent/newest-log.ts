import { stripText } from '../../safety/redact.ts'
import { namesIn, statOf } from './capabilities/fs.ts'
import { CapabilityError } from './capability.ts'
import { isSecret } from './manifest.ts'
import { type OpenEntry, openContent, openEntry, readPart } from './walk.ts'

/** A file in a directory of logs, as the call's result lists it. */
type LogFile = { name: string; bytes: number; modified: string }

type NewestLog = {
  held: OpenEntry
  /** The newest log files, the newest first. */
  files: LogFile[]
  /** The number of all log files in the directory. */
  total: number
}

/** Rotated and compressed files, whose lines cannot be read. */
const packed = /\.(?:gz|xz|bz2|zst|lz4|zip|Z|br)$/
const shown = 15
/** The most files that are tried. The newest may be no log, such as a database file. */
const tries = 10
const looked = 4_096

/**
 * Opens the newest text file of a directory for `act`. Symbolic links, secrets and the agent's
 * files do not count as logs. Throws if there is no log, and lists the subdirectories.
 */
export async function withNewestLog<T>(
  directory: OpenEntry,
  { isOwn, signal }: { isOwn(path: string): boolean; signal: AbortSignal },
  act: (found: NewestLog) => Promise<T>,
): Promise<T> {
  const { files, below } = await listFiles(directory, isOwn, signal)
  for (const { name } of files.slice(0, tries)) {
    const held = await openEntry(directory, name)
    if (!held) continue
    try {
      if (!(await isText(held, signal))) continue
      return await act({ held, files: files.slice(0, shown).map(toShown), total: files.length })
    } finally {
      await held.handle.close()
    }
  }
  const directories = below.length > 0 ? `, and the directories ${below.slice(0, shown).map(plain).join(', ')}` : ''
  throw new CapabilityError(
    'not_found',
    `${directory.path} has no log file that may be read${directories}: give the path of a file`,
  )
}

type Found = { name: string; bytes: number; atMs: number }

async function listFiles(
  directory: OpenEntry,
  isOwn: (path: string) => boolean,
  signal: AbortSignal,
): Promise<{ files: Found[]; below: string[] }> {
  const { names } = await namesIn(directory.handle, signal)
  const files: Found[] = []
  const below: string[] = []
  for (const bytes of names) {
    signal.throwIfAborted()
    const name = bytes.toString('utf8')
    const path = `${directory.path === '/' ? '' : directory.path}/${name}`
    // Skips a name that is not valid text, because no call could request it.
    if (!Buffer.from(name).equals(bytes) || isSecret(path) || isOwn(path)) continue
    const stat = await statOf(directory.handle, bytes)
    if (stat?.isDirectory()) below.push(name)
    if (!stat?.isFile() || stat.size === 0n || packed.test(name)) continue
    files.push({ name, bytes: Number(stat.size), atMs: Number(stat.mtimeMs) })
  }
  return { files: files.sort((a, b) => b.atMs - a.atMs || (a.name < b.name ? -1 : 1)), below: below.sort() }
}

/**
 * Whether a file is text. False also for a file that may not be opened, so that the next file is
 * tried.
 */
async function isText(held: OpenEntry, signal: AbortSignal): Promise<boolean> {
  try {
    const file = await openContent(held)
    try {
      return !(await readPart(file, 0, looked, signal)).includes(0)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (signal.aborted) throw error
    return false
  }
}

const plain = (text: string): string => stripText(text, { keepNewlines: false })

const toShown = ({ name, bytes, atMs }: Found): LogFile => ({
  name: plain(name),
  bytes,
  modified: new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z'),
})
