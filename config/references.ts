import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { posix } from 'node:path'
import { minCredentialCharacters } from '../domain/hidden-credentials.ts'

/** A credential or list of authorities named by a source or job is absent, or not to be read. */
export class NoCredential extends Error {
  override name = 'NoCredential' as const
  /** There is nothing, and it may come yet; else what is there is not to be read. */
  readonly isAbsent: boolean
  constructor(message: string, isAbsent = false) {
    super(message)
    this.isAbsent = isAbsent
  }
}

/** Longer than any token, and than a chain of certificates of one server. */
const maxCredentialBytes = 64_000
/** The authorities of a whole system are a quarter of a megabyte. */
const maxAuthorityBytes = 2_000_000

/**
 * Reads a credential by its reference, `file:/path` or `env:NAME`, when needed: a new one works
 * without a restart. `directory`: the only one whose files may be read; null where the reference is
 * in a file of the API's host. No message has the file system's words.
 */
export function readRef(ref: string, directory: string | null = null): string {
  const [kind = '', place = ''] = ref.split(/:(.*)/s)
  const read = kind === 'file' ? readWithin(place, directory, maxCredentialBytes) : (process.env[place] ?? '')
  // PEM stays as it is in its file; a token loses the end of its line.
  const text = kind === 'file' && read.includes('-----BEGIN') ? read : read.trim()
  const what = kind === 'file' ? `the file ${place}` : `the variable ${place}`
  if (text === '') throw new NoCredential(`${what} is empty or cannot be read by the API process`, true)
  if (text.length < minCredentialCharacters)
    throw new NoCredential(
      `${what} holds fewer than ${minCredentialCharacters} characters, which could not be hidden in an answer`,
    )
  return text
}

/** PEM of authorities, by the same rule; it is no secret. */
export function readAuthorities(place: string, directory: string | null = null): string {
  const text = readWithin(place, directory, maxAuthorityBytes)
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new NoCredential(
    `the file ${place} holds no certificate (PEM), or cannot be read by the API process`,
    text === '',
  )
}

/** Is it a place below the directory? Where its links lead is seen when it is read. */
function isBelow(place: string, directory: string): boolean {
  return place === posix.normalize(place) && place.startsWith(`${directory.replace(/\/+$/, '')}/`)
}

/** One file has one name here: `..data/token` would be another for a mounted secret's `token`. */
const hasDots = (place: string): boolean => place.split('/').some((each) => each.startsWith('.'))

/** Empty where there is nothing to read. Throws NoCredential where it is not to be read. */
function readWithin(place: string, directory: string | null, maxBytes: number): string {
  const refuse = (why: string) => new NoCredential(`the file ${place} ${why}`)
  const real = realPath(place)
  if (directory !== null) {
    if (!isBelow(place, directory)) throw refuse(`is not below ${directory} (SOURCES_DIR)`)
    if (hasDots(place.slice(directory.length))) throw refuse('has a name that begins with a dot')
    if (real === null) return ''
    if (!isBelow(real, realPath(directory) ?? directory)) throw refuse(`leads out of ${directory} (SOURCES_DIR)`)
  }
  if (real === null) return ''
  let file: number
  try {
    // What became a link since is not followed, and a pipe without a writer is not waited for.
    file = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return ''
  }
  try {
    const found = fstatSync(file)
    if (!found.isFile()) throw refuse('is not a regular file')
    if (found.size > maxBytes) throw refuse(`is larger than ${maxBytes / 1000} kB`)
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

function realPath(place: string): string | null {
  try {
    return realpathSync(place)
  } catch {
    return null
  }
}
