import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { posix } from 'node:path'
import { minCredentialCharacters } from '../domain/hidden-credentials.ts'

/** The error that a credential, or a file of certificate authorities, is absent or was refused. */
export class NoCredential extends Error {
  override name = 'NoCredential' as const
  /**
   * True if the credential is absent, but may be provided later; false if it exists and was
   * refused.
   */
  readonly isAbsent: boolean
  constructor(message: string, isAbsent = false) {
    super(message)
    this.isAbsent = isAbsent
  }
}

/**
 * The maximum size of a credential. Any token, or chain of certificates of one server, is smaller.
 */
const maxCredentialBytes = 64_000
/**
 * The maximum size of a file of certificate authorities. Those of a whole system need about 250 kB.
 */
const maxAuthorityBytes = 2_000_000

/**
 * Reads a credential by its reference, `file:/path` or `env:NAME`, each time that the credential is
 * needed, so that a new value works without a restart. `directory`: the only directory from which
 * files may be read; null if the reference comes from a file on the host of the API. No error
 * message contains text from the file system.
 */
export function readRef(ref: string, directory: string | null = null): string {
  const [kind = '', place = ''] = ref.split(/:(.*)/s)
  const read = kind === 'file' ? readWithin(place, directory, maxCredentialBytes) : (process.env[place] ?? '')
  // Keeps PEM unchanged, and removes the final line break of a token.
  const text = kind === 'file' && read.includes('-----BEGIN') ? read : read.trim()
  const what = kind === 'file' ? `the file ${place}` : `the variable ${place}`
  if (text === '') throw new NoCredential(`${what} is empty or cannot be read by the API process`, true)
  if (text.length < minCredentialCharacters)
    throw new NoCredential(
      `${what} holds fewer than ${minCredentialCharacters} characters, so it could not be redacted in responses`,
    )
  return text
}

/**
 * Reads a file of certificate authorities (PEM), with the same limits on its path as `readRef`.
 * Certificate authorities are not secret.
 */
export function readAuthorities(place: string, directory: string | null = null): string {
  const text = readWithin(place, directory, maxAuthorityBytes)
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text
  throw new NoCredential(
    `the file ${place} holds no certificate (PEM), or cannot be read by the API process`,
    text === '',
  )
}

/** Whether the path is below the directory. Symbolic links are checked when the file is read. */
function isBelow(place: string, directory: string): boolean {
  return place === posix.normalize(place) && place.startsWith(`${directory.replace(/\/+$/, '')}/`)
}

/**
 * Whether a part of the path begins with a dot. Such a path is refused, because a credential must
 * not have a second name, such as `..data/token`.
 */
const hasDots = (place: string): boolean => place.split('/').some((each) => each.startsWith('.'))

/** Reads a file. Empty without the file. Throws NoCredential if the file must not be read. */
function readWithin(place: string, directory: string | null, maxBytes: number): string {
  const refuse = (why: string) => new NoCredential(`the file ${place} ${why}`)
  const real = realPath(place)
  if (directory !== null) {
    if (!isBelow(place, directory)) throw refuse(`is not below ${directory} (SOURCES_DIR)`)
    if (hasDots(place.slice(directory.length))) throw refuse('has a name that begins with a dot')
    if (real === null) return ''
    if (!isBelow(real, realPath(directory) ?? directory))
      throw refuse(`resolves to a path outside ${directory} (SOURCES_DIR)`)
  }
  if (real === null) return ''
  let file: number
  try {
    // Follows no symbolic link made since the check, and does not wait for a pipe without a writer.
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
