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
import { type Entry, genesis, hashOf, type Place, segmentName, segmentsOf, type Told, verifyChain } from './chain.ts'
import { type Knowledge, knowledge } from './known.ts'

const sync = promisify(fdatasync)

export type Journal = {
  known: Knowledge
  entries(): number
  head(): string
  /** Why no write is done: the journal before this one is gone, and with it what has been done already. Null when all is well. */
  lost(): string | null
  /** Appends an entry and answers its hash. It survives the end of this process from then on, and the machine's with `durable`. */
  append(told: Told): string
  /** Resolves when everything appended so far is on the disk. */
  durable(): Promise<void>
  answerAt(place: Place): Omit<CapabilityAnswer, 'audit_hash'>
  close(): void
}

export type JournalOptions = {
  segmentBytes?: number
  segmentsKept?: number
  nowMs?: () => number
  /** Told of each entry as soon as it is written. */
  onEntry?: (told: Told) => void
}

/**
 * Opens the journal of a state directory, `journal/` with a segment per so many bytes and `head.json` beside it. The head names an
 * entry that was once on disk: a journal that does not hold it is another one, or was cut. What cannot be believed is put
 * aside, and a new journal begins with an entry that says so.
 */
export function openJournal(
  state: string,
  { segmentBytes = 4 << 20, segmentsKept = 32, nowMs = Date.now, onEntry = () => undefined }: JournalOptions = {},
): Journal {
  const directory = join(state, 'journal')
  const headFile = join(state, 'head.json')
  let known = knowledge()
  const found = believe()
  if (found.reason !== null) putAside()
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  let last = found.reason === null ? found.last : { n: 0, hash: genesis }
  if (!existsSync(headFile)) writeHead(last)
  const headFd = openSync(headFile, 'r+')
  let segment = segmentsOf(directory).at(-1) ?? segmentName(1)
  let fd = openSync(join(directory, segment), 'a', 0o600)
  let size = statSync(join(directory, segment)).size
  fsyncDirectory(directory)
  fsyncDirectory(state)
  let durableN = last.n
  let syncing: Promise<void> | null = null
  if (found.reason !== null) append({ kind: 'lost', reason: found.reason })

  function believe(): { reason: string | null; last: { n: number; hash: string } } {
    const no = (reason: string) => ({ reason, last: { n: 0, hash: genesis } })
    const segments = segmentsOf(directory)
    if (!existsSync(headFile)) {
      if (segments.length > 0) return no('head.json is gone')
      // Nonces are older than the first entry: where they are, there was a journal.
      return existsSync(join(state, 'nonces'))
        ? no('the journal is gone')
        : { reason: null, last: { n: 0, hash: genesis } }
    }
    const head = readHead()
    if (!head) return no('head.json cannot be read')
    let isThere = head.n === 0
    const verified = verifyChain(directory, (entry, hash, place) => {
      if (entry.n === head.n && hash === head.hash) isThere = true
      known.apply(entry, hash, place)
    })
    if (!verified.ok) return no(verified.reason)
    if (!isThere) {
      return no(
        segments.length === 0
          ? 'the journal is gone'
          : `the journal ends at ${verified.entries}, or is not the one that had entry ${head.n}`,
      )
    }
    const newest = segments.at(-1)
    if (verified.tornBytes > 0 && newest) {
      const file = join(directory, newest)
      truncateSync(file, statSync(file).size - verified.tornBytes)
    }
    return { reason: null, last: { n: verified.entries, hash: verified.head } }
  }

  function putAside(): void {
    known = knowledge()
    const suffix = new Date(nowMs()).toISOString().replace(/[:.]/g, '')
    if (existsSync(directory)) renameSync(directory, `${directory}-lost-${suffix}`)
    if (existsSync(headFile)) renameSync(headFile, join(state, `head-lost-${suffix}.json`))
  }

  function readHead(): { n: number; hash: string } | null {
    try {
      const head = JSON.parse(readFileSync(headFile, 'utf8'))
      return Number.isInteger(head.n) && typeof head.hash === 'string' ? head : null
    } catch {
      return null
    }
  }

  /** The first one is there before the first entry: from then on a journal without a head is one that somebody touched. */
  function writeHead(head: { n: number; hash: string }): void {
    writeFileSync(headFile, headText(head), { mode: 0o600 })
  }

  function append(told: Told): string {
    if (size > segmentBytes) rotate()
    const entry: Entry = { n: last.n + 1, prev: last.hash, at: new Date(nowMs()).toISOString(), ...told }
    const bytes = Buffer.from(`${JSON.stringify(entry)}\n`, 'utf8')
    const length = bytes.length - 1
    try {
      writeAll(fd, bytes)
    } catch (error) {
      // Half a line would break the chain for whatever follows once there is room again.
      ftruncateSync(fd, size)
      throw error
    }
    const hash = hashOf(bytes.subarray(0, length))
    known.apply(entry, hash, { segment, offset: size, length })
    size += bytes.length
    last = { n: entry.n, hash }
    onEntry(told)
    return hash
  }

  function rotate(): void {
    fsyncSync(fd)
    const old = fd
    if (syncing) void syncing.catch(() => undefined).then(() => closeSync(old))
    else closeSync(old)
    segment = segmentName(last.n + 1)
    fd = openSync(join(directory, segment), 'a', 0o600)
    size = 0
    fsyncDirectory(directory)
    const segments = segmentsOf(directory)
    const oldest = segments.slice(0, Math.max(0, segments.length - segmentsKept))
    const firstKept = segments[oldest.length]
    if (oldest.length === 0 || !firstKept) return
    // Said before it is done: a journal that lacks entries which nobody said to be pruned was cut.
    append({ kind: 'pruned', through: Number.parseInt(firstKept, 10) - 1 })
    fsyncSync(fd)
    for (const name of oldest) unlinkSync(join(directory, name))
    known.forgetSegments(new Set(oldest))
  }

  async function durable(): Promise<void> {
    const wanted = last.n
    while (durableN < wanted) {
      syncing ??= syncOnce().finally(() => {
        syncing = null
      })
      await syncing
    }
  }

  async function syncOnce(): Promise<void> {
    const at = last
    await sync(fd)
    durableN = at.n
    // Only what is on disk: after a loss of power the head must not name an entry that never got there.
    writeSync(headFd, headText(at), 0, 'utf8')
  }

  return {
    get known() {
      return known
    },
    entries: () => last.n,
    head: () => last.hash,
    lost: () => known.lost(),
    append,
    durable,
    answerAt({ segment, offset, length }) {
      const bytes = Buffer.alloc(length)
      const file = openSync(join(directory, segment), 'r')
      try {
        readSync(file, bytes, 0, length, offset)
      } finally {
        closeSync(file)
      }
      return JSON.parse(bytes.toString('utf8')).answer
    },
    close() {
      fsyncSync(fd)
      writeSync(headFd, headText(last), 0, 'utf8')
      closeSync(fd)
      closeSync(headFd)
    },
  }
}

/** Always as long, so that it can be written over in one go. */
function headText(head: { n: number; hash: string }): string {
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
