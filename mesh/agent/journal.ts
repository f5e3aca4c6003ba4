import {
  closeSync,
  existsSync,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { CapabilityAnswer } from '../../domain/mesh.ts'
import {
  type ChainEntry,
  genesis,
  hashOf,
  type JournalEntryBody,
  type JournalPosition,
  segmentName,
  segmentsOf,
  verifyChain,
} from './chain.ts'
import { type JournalIndex, journalIndex } from './journal-index.ts'

const sync = promisify(fdatasync)

export type Journal = {
  index: JournalIndex
  entries(): number
  head(): string
  /**
   * Returns why no write runs: the journal before this journal is lost, with its record of earlier
   * writes. Null if no journal was lost.
   */
  lost(): string | null
  /**
   * Appends an entry and returns its hash. The entry survives the end of this process, and after
   * `durable` also a crash of the machine.
   */
  append(body: JournalEntryBody): string
  /** Resolves when all entries that exist at the time of the call are on the disk. */
  durable(): Promise<void>
  answerAt(place: JournalPosition): Omit<CapabilityAnswer, 'audit_hash'>
  close(): void
}

export type JournalOptions = {
  segmentBytes?: number
  segmentsKept?: number
  nowMs?: () => number
  /** Called with each entry as soon as it is written. */
  onEntry?: (body: JournalEntryBody) => void
}

/** Number and hash of an entry. */
type Head = { n: number; hash: string }

const beforeFirst: Head = { n: 0, hash: genesis }

/** The paths of a journal, and its limits. */
type Store = { state: string; directory: string; headFile: string } & Required<JournalOptions>

/** An open journal: what was read from its files, and where the next entry goes. */
type OpenJournal = Store & {
  index: JournalIndex
  last: Head
  headFd: number
  /** The newest segment, its file descriptor and its size in bytes. */
  segment: string
  fd: number
  size: number
  /** The number of the last entry that is on the disk. */
  durableN: number
  syncing: Promise<void> | null
}

/**
 * Opens the journal of a state directory: `journal/` with segments of limited size, and `head.json`
 * beside it. The head names an entry that was once on disk; a journal without this entry is another
 * journal, or was cut. An untrusted journal is put aside. The new journal then begins with an entry
 * that records the loss.
 */
export function openJournal(
  state: string,
  { segmentBytes = 4 << 20, segmentsKept = 32, nowMs = Date.now, onEntry = () => undefined }: JournalOptions = {},
): Journal {
  const directory = join(state, 'journal')
  const headFile = join(state, 'head.json')
  const store: Store = { state, directory, headFile, segmentBytes, segmentsKept, nowMs, onEntry }
  const read = readExisting(store)
  if (!read.ok) putAside(store)
  const journal = openFiles(store, read.ok ? read : { index: journalIndex(), last: beforeFirst })
  if (!read.ok) append(journal, { kind: 'lost', reason: read.reason })
  return {
    index: journal.index,
    entries: () => journal.last.n,
    head: () => journal.last.hash,
    lost: () => journal.index.lost(),
    append: (body) => append(journal, body),
    durable: () => durable(journal),
    answerAt: (place) => answerAt(journal, place),
    close: () => close(journal),
  }
}

type Existing = { ok: true; index: JournalIndex; last: Head } | { ok: false; reason: string }

/** Reads the existing journal. `reason` says why the journal cannot be trusted. */
function readExisting({ state, directory, headFile }: Store): Existing {
  const no = (reason: string): Existing => ({ ok: false, reason })
  const index = journalIndex()
  const segments = segmentsOf(directory)
  if (!existsSync(headFile)) {
    if (segments.length > 0) return no('head.json is gone')
    // Refuses a missing journal if the file of nonces exists, which is made after the journal.
    return existsSync(join(state, 'nonces')) ? no('the journal is gone') : { ok: true, index, last: beforeFirst }
  }
  const head = readHead(headFile)
  if (!head) return no('head.json cannot be read')
  let isThere = head.n === 0
  const verified = verifyChain(directory, (entry, hash, place) => {
    if (entry.n === head.n && hash === head.hash) isThere = true
    index.apply(entry, hash, place)
  })
  if (!verified.ok) return no(verified.reason)
  if (!isThere) {
    return no(
      segments.length === 0
        ? 'the journal is gone'
        : `the journal ends at ${verified.entries}, or this is not the journal that had entry ${head.n}`,
    )
  }
  const newest = segments.at(-1)
  if (verified.tornBytes > 0 && newest) {
    const file = join(directory, newest)
    truncateSync(file, statSync(file).size - verified.tornBytes)
  }
  return { ok: true, index, last: { n: verified.entries, hash: verified.head } }
}

function putAside({ state, directory, headFile, nowMs }: Store): void {
  const suffix = new Date(nowMs()).toISOString().replace(/[:.]/g, '')
  if (existsSync(directory)) renameSync(directory, `${directory}-lost-${suffix}`)
  if (existsSync(headFile)) renameSync(headFile, join(state, `head-lost-${suffix}.json`))
}

function openFiles(store: Store, { index, last }: { index: JournalIndex; last: Head }): OpenJournal {
  const { state, directory, headFile } = store
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  // Creates the head before the first entry: entries without a head prove an outside change.
  if (!existsSync(headFile)) writeFileSync(headFile, headText(last), { mode: 0o600 })
  const headFd = openSync(headFile, 'r+')
  const segment = segmentsOf(directory).at(-1) ?? segmentName(1)
  const fd = openSync(join(directory, segment), 'a', 0o600)
  const { size } = statSync(join(directory, segment))
  fsyncDirectory(directory)
  fsyncDirectory(state)
  return { ...store, index, last, headFd, segment, fd, size, durableN: last.n, syncing: null }
}

function readHead(headFile: string): Head | null {
  try {
    const head = JSON.parse(readFileSync(headFile, 'utf8'))
    return Number.isInteger(head.n) && typeof head.hash === 'string' ? head : null
  } catch {
    return null
  }
}

function append(journal: OpenJournal, body: JournalEntryBody): string {
  if (journal.size > journal.segmentBytes) rotate(journal)
  const { last, fd, segment, size } = journal
  const entry: ChainEntry = { n: last.n + 1, prev: last.hash, at: new Date(journal.nowMs()).toISOString(), ...body }
  const bytes = Buffer.from(`${JSON.stringify(entry)}\n`, 'utf8')
  const length = bytes.length - 1
  try {
    writeAll(fd, bytes)
  } catch (error) {
    // Removes an incomplete line, because it would break the chain for later entries.
    ftruncateSync(fd, size)
    throw error
  }
  const hash = hashOf(bytes.subarray(0, length))
  journal.index.apply(entry, hash, { segment, offset: size, length })
  journal.size += bytes.length
  journal.last = { n: entry.n, hash }
  journal.onEntry(body)
  return hash
}

/** Begins the next segment, and removes the oldest segments above the limit. */
function rotate(journal: OpenJournal): void {
  const { directory } = journal
  const old = journal.fd
  fsyncSync(old)
  if (journal.syncing) void journal.syncing.catch(() => undefined).then(() => closeSync(old))
  else closeSync(old)
  journal.segment = segmentName(journal.last.n + 1)
  journal.fd = openSync(join(directory, journal.segment), 'a', 0o600)
  journal.size = 0
  fsyncDirectory(directory)
  const segments = segmentsOf(directory)
  const oldest = segments.slice(0, Math.max(0, segments.length - journal.segmentsKept))
  const firstKept = segments[oldest.length]
  if (oldest.length === 0 || !firstKept) return
  // Records the pruning before the segments are removed. Missing entries without a `pruned` entry
  // mean that the journal was cut.
  append(journal, { kind: 'pruned', through: Number.parseInt(firstKept, 10) - 1 })
  fsyncSync(journal.fd)
  for (const name of oldest) unlinkSync(join(directory, name))
  journal.index.forgetSegments(new Set(oldest))
}

async function durable(journal: OpenJournal): Promise<void> {
  const wanted = journal.last.n
  while (journal.durableN < wanted) {
    journal.syncing ??= syncOnce(journal).finally(() => {
      journal.syncing = null
    })
    await journal.syncing
  }
}

async function syncOnce(journal: OpenJournal): Promise<void> {
  const at = journal.last
  await sync(journal.fd)
  journal.durableN = at.n
  // Writes to the head only an entry that is on disk, because after a power loss the head must not
  // name a missing entry.
  writeSync(journal.headFd, headText(at), 0, 'utf8')
}

function answerAt(
  { directory }: OpenJournal,
  { segment, offset, length }: JournalPosition,
): Omit<CapabilityAnswer, 'audit_hash'> {
  const bytes = Buffer.alloc(length)
  const file = openSync(join(directory, segment), 'r')
  try {
    readSync(file, bytes, 0, length, offset)
  } finally {
    closeSync(file)
  }
  return JSON.parse(bytes.toString('utf8')).answer
}

function close({ fd, headFd, last }: OpenJournal): void {
  fsyncSync(fd)
  writeSync(headFd, headText(last), 0, 'utf8')
  closeSync(fd)
  closeSync(headFd)
}

/** Pads the head to a constant length, so that one write can replace it. */
function headText(head: Head): string {
  return `${JSON.stringify(head).padEnd(120)}\n`
}

function writeAll(fd: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
}

function fsyncDirectory(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
