import { createHash, timingSafeEqual } from 'node:crypto'
import { posix } from 'node:path'
import { NoCredential, readAuthorities, readRef } from '../config/references.ts'
import type { Source } from '../domain/source.ts'
import { SourceError } from './kind.ts'

/** The files that a source names: read below one directory alone, which the API's environment names. */

export const defaultSourcesDirectory = '/run/nightshift-api/sources'

type Named = Pick<Source, 'name' | 'kind' | 'url' | 'credential' | 'caFile' | 'options' | 'timeoutSeconds'>

/** The credential of a source, read now. Throws SourceError. */
export function readSourceCredential(source: Named, directory: string): string | null {
  const { credential } = source
  return credential === null ? null : orRefuse(source, directory, () => readRef(credential, directory))
}

/** PEM of the authorities that a source's server is believed by, instead of those of the system. Throws SourceError. */
export function readSourceAuthorities(source: Named, directory: string): string | null {
  const { caFile } = source
  return caFile === null ? null : orRefuse(source, directory, () => readAuthorities(caFile, directory))
}

/** Why a source is not asked: what it names is not there, or is not to be read. Null: nothing is in the way. */
export function findCredentialTrouble(source: Named, directory: string): { isAbsent: boolean; text: string } | null {
  try {
    readSourceCredential(source, directory)
    readSourceAuthorities(source, directory)
    return null
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    return { isAbsent: error.cause instanceof NoCredential && error.cause.isAbsent, text: error.message }
  }
}

/** Is this the SHA-256 of what the source would be sent, or of the file with the end of its line? */
export function matchesCredential(source: Named, directory: string, sha256: string): boolean {
  const secret = readSourceCredential(source, directory)
  if (secret === null) return false
  return ['', '\n', '\r\n'].some((end) =>
    timingSafeEqual(createHash('sha256').update(`${secret}${end}`).digest(), Buffer.from(sha256, 'hex')),
  )
}

function orRefuse(source: Named, directory: string, read: () => string): string {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof NoCredential)) throw error
    const remedy = error.message.includes(' (SOURCES_DIR)') ? `: ${moveCommand(source, directory)}` : ''
    throw new SourceError('NO_CREDENTIAL', `${source.name}: ${error.message}${remedy}`, { cause: error })
  }
}

/** What moves the files of a source to where they may be read, for the shell of the API's host. */
function moveCommand({ name, kind, url, credential, caFile, options, timeoutSeconds }: Named, directory: string) {
  const isOutside = (place: string) => !place.startsWith(`${directory}/`)
  const moved = (place: string) => (isOutside(place) ? posix.join(directory, posix.basename(place)) : place)
  const file = credential?.startsWith('file:') ? credential.slice('file:'.length) : null
  const files = [file, caFile].filter((each) => each !== null).filter(isOutside)
  const words = [
    ...['nightshift', 'sources', 'add', name, '--kind', kind, '--at', url],
    ...(credential === null ? [] : ['--credential', file === null ? credential : `file:${moved(file)}`]),
    ...(caFile === null ? [] : ['--ca', moved(caFile)]),
    ...(timeoutSeconds === 10 ? [] : ['--timeout', String(timeoutSeconds)]),
    ...Object.entries(options).flatMap(([key, value]) => ['--option', `${key}=${value}`]),
  ]
  const move = files.length > 0 ? `mv ${files.map(quote).join(' ')} ${quote(`${directory}/`)} && ` : ''
  return `${move}${words.map(quote).join(' ')}`
}

const quote = (word: string): string =>
  /^[A-Za-z0-9_./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
