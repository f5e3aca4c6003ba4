import { createHash, createPrivateKey, timingSafeEqual, X509Certificate } from 'node:crypto'
import { posix } from 'node:path'
import type { DatabaseServer } from '../clients/databases/server.ts'
import { NoCredential, readAuthorities, readRef } from '../config/references.ts'
import { isBasicPair, minCredentialCharacters } from '../domain/hidden-credentials.ts'
import { isReference, listReferences, type Source } from '../domain/source.ts'
import { SourceError } from './kind.ts'

/** The default of the only directory from which files of sources are read. */

export const defaultSourcesDirectory = '/run/nightshift-api/sources'

type Named = Omit<Source, 'createdBy' | 'createdAt'>

/** The parts of a request to a source that log in. No response may show a text in `secrets`. */
type SentWith = {
  headers: Record<string, string>
  /** PEM of the certificate authorities that replace the system's authorities for this server. */
  ca: string | null
  client: { cert: string; key: string } | null
  secrets: string[]
}

/** Reads headers, credential and certificates for one request. Throws SourceError. */
export function readSentWith(source: Named, directory: string): SentWith {
  const { credential, headers, caFile } = source
  try {
    const secret = credential === null ? null : readRef(credential, directory)
    const tenants = Object.entries(headers).map(([name, value]) => {
      return { name, isSecret: isReference(value), value: isReference(value) ? readRef(value, directory) : value }
    })
    return {
      headers: {
        ...Object.fromEntries(tenants.map(({ name, value }) => [name, value])),
        ...(secret !== null && { authorization: toAuthorization(source.scheme, secret) }),
      },
      ca: caFile === null ? null : readAuthorities(caFile, directory),
      client: readClientCertificate(source, directory),
      secrets: [
        ...(secret === null ? [] : [secret]),
        ...tenants.filter((each) => each.isSecret).map((each) => each.value),
      ],
    }
  } catch (error) {
    throw toSourceError(source, error, directory)
  }
}

function toSourceError(source: Named, error: unknown, directory: string): unknown {
  if (!(error instanceof NoCredential)) return error
  const remedy = error.message.includes(' (SOURCES_DIR)') ? `: ${moveCommand(source, directory)}` : ''
  return new SourceError('NO_CREDENTIAL', `${source.name}: ${error.message}${remedy}`, { cause: error })
}

const usualPorts = { postgres: 5_432, mysql: 3_306 } as const
const loopback = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * Reads the address of a database server and the login from the source's credential. Allows an
 * unencrypted connection only to this machine, unless an option permits it. Throws SourceError.
 */
export function readLogin(source: Named, directory: string): DatabaseServer {
  const { credential, caFile, options, url, timeoutSeconds } = source
  if (credential === null)
    throw new SourceError('NO_CREDENTIAL', `${source.name} has no login: ${addCommand(source)} --credential REF`)
  const { protocol, hostname, port, pathname } = new URL(url)
  const dialect = protocol === 'mysql:' ? 'mysql' : 'postgres'
  try {
    const secret = readRef(credential, directory)
    const [user = '', password = ''] = secret.split(/:(.*)/s)
    if (user === '' || password.length < minCredentialCharacters)
      throw new NoCredential(
        `${credential} must contain user:password of at least ${minCredentialCharacters} characters`,
      )
    return {
      dialect,
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || usualPorts[dialect],
      database: decodeURIComponent(pathname.slice(1)) || null,
      login: { user, password },
      tls: (options.tls as DatabaseServer['tls'] | undefined) ?? (loopback.test(hostname) ? 'off' : 'verified'),
      ca: caFile === null ? null : readAuthorities(caFile, directory),
      client: readClientCertificate(source, directory),
      timeoutMs: timeoutSeconds * 1_000,
    }
  } catch (error) {
    throw toSourceError(source, error, directory)
  }
}

/**
 * Writes the header. Elasticsearch expects `id:key` in base64; InfluxDB `user:password` unencoded.
 */
function toAuthorization(scheme: Named['scheme'], secret: string): string {
  const isPair = isBasicPair(secret)
  const sent = scheme ?? (isPair ? 'Basic' : 'Bearer')
  const isEncoded = isPair && (sent === 'Basic' || sent === 'ApiKey')
  return `${sent} ${isEncoded ? Buffer.from(secret).toString('base64') : secret}`
}

/**
 * Reads the client certificate and its key. Throws NoCredential if one of them is invalid, if they
 * do not match, or if the certificate has expired.
 */
function readClientCertificate({ certFile, keyFile }: Named, directory: string): SentWith['client'] {
  if (certFile === null || keyFile === null) return null
  const [cert, key] = [readAuthorities(certFile, directory), readRef(`file:${keyFile}`, directory)]
  const certificate = readPem(() => new X509Certificate(cert), `the file ${certFile} has no readable certificate`)
  const own = readPem(() => createPrivateKey(key), `the file ${keyFile} has no key (PEM, without a password)`)
  if (!certificate.checkPrivateKey(own)) throw new NoCredential(`${keyFile} is not the key of ${certFile}`)
  if (Date.parse(certificate.validTo) < Date.now())
    throw new NoCredential(
      `the certificate in ${certFile} expired on ${certificate.validTo}: renew the certificate`,
      true,
    )
  return { cert, key }
}

function readPem<T>(read: () => T, otherwise: string): T {
  try {
    return read()
  } catch {
    throw new NoCredential(otherwise)
  }
}

/**
 * Returns why a source cannot be queried: a named file or variable is absent or unreadable. Null if
 * the source is ready.
 */
export function findCredentialTrouble(source: Named, directory: string): { isAbsent: boolean; text: string } | null {
  try {
    readSentWith(source, directory)
    return null
  } catch (error) {
    if (!(error instanceof SourceError)) throw error
    return { isAbsent: error.cause instanceof NoCredential && error.cause.isAbsent, text: error.message }
  }
}

/**
 * Lists the source's references whose secret has one of these SHA-256 digests, with or without a
 * final line break.
 */
export function findKnown(source: Named, directory: string, digests: readonly string[]): string[] {
  return listReferences(source).filter((reference) => {
    const secret = readRef(reference, directory)
    return ['', '\n', '\r\n'].some((end) => {
      const own = createHash('sha256').update(`${secret}${end}`).digest()
      return digests.some((digest) => timingSafeEqual(own, Buffer.from(digest, 'hex')))
    })
  })
}

/** Builds the shell command that moves a source's files to the allowed directory. */
function moveCommand(source: Named, directory: string): string {
  const isOutside = (file: string) => !file.startsWith(`${directory}/`)
  const moved = (file: string) => (isOutside(file) ? posix.join(directory, posix.basename(file)) : file)
  const toFile = (reference: string) => (reference.startsWith('file:') ? [reference.slice('file:'.length)] : [])
  const move = (reference: string) => toFile(reference).map((file) => `file:${moved(file)}`)[0] ?? reference
  const { credential, writeCredential, headers, caFile, certFile, keyFile } = source
  const files = [
    ...[credential ?? '', writeCredential ?? '', ...Object.values(headers)].flatMap(toFile),
    caFile,
    certFile,
    keyFile,
  ]
    .filter((each) => each !== null)
    .filter(isOutside)
  const command = addCommand({
    ...source,
    credential: credential && move(credential),
    writeCredential: writeCredential && move(writeCredential),
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, move(value)])),
    caFile: caFile && moved(caFile),
    certFile: certFile && moved(certFile),
    keyFile: keyFile && moved(keyFile),
  })
  return `${files.length > 0 ? `mv ${files.map(quote).join(' ')} ${quote(`${directory}/`)} && ` : ''}${command}`
}

/** Builds the shell command that adds this source. */
export function addCommand({ name, kind, url, timeoutSeconds, options, headers, ...rest }: Named): string {
  const given = {
    credential: rest.credential,
    'write-credential': rest.writeCredential,
    scheme: rest.scheme,
    ca: rest.caFile,
    cert: rest.certFile,
    key: rest.keyFile,
  }
  const words = [
    ...['nightshift', 'sources', 'add', name, '--kind', kind, '--at', url],
    ...Object.entries(given).flatMap(([option, value]) => (value === null ? [] : [`--${option}`, value])),
    ...Object.entries(headers).flatMap(([header, value]) => ['--header', `${header}=${value}`]),
    ...(timeoutSeconds === 10 ? [] : ['--timeout', String(timeoutSeconds)]),
    ...Object.entries(options).flatMap(([key, value]) => ['--option', `${key}=${value}`]),
  ]
  return words.map(quote).join(' ')
}

const quote = (word: string): string =>
  /^[A-Za-z0-9_./:@%+,=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
