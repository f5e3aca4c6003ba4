import { createHash, generateKeyPairSync } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { isIP } from 'node:net'
import { dirname, join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { z } from 'zod'
import { isThisMachine } from '../../domain/mesh-connection.ts'
import { version } from '../../domain/version.ts'
import { readPublicKey, writePublicKey } from '../sign.ts'
import { trustManifest } from './manifest.ts'
import { pinName, whyNotOurs } from './state-folder.ts'
import { describeUnreached } from './unreached.ts'

/**
 * Paths of an enrolled device's files. Manifest and root key are in the state directory by default.
 */
export type Places = { state: string; manifest?: string; rootKey?: string }

/**
 * The enrolment failed and nothing was changed. `refused`: the control plane refused the token, and
 * a retry does not help.
 */
export class NotEnrolled extends Error {
  override name = 'NotEnrolled' as const
  readonly why: 'refused' | 'unreachable' | 'unbelievable' | 'not enrolled' | 'bad address' | 'not ours'
  constructor(why: NotEnrolled['why'], message: string) {
    super(message)
    this.why = why
  }
}

const enrolment = z.looseObject({
  device: z.string(),
  root_public_key: z.string(),
  manifest: z.record(z.string(), z.unknown()),
  refresh_token: z.string(),
})
const refreshed = z.looseObject({ manifest: z.record(z.string(), z.unknown()) })
const kept = z.looseObject({ api: z.string(), ca: z.string().nullable().default(null), token: z.string() })
const connection = z.looseObject({
  api: z.string(),
  ca: z.string().nullable(),
  key: z.string(),
  isPlainAllowed: z.boolean(),
})

/** Sends the one-time token, pins the root key, stores the manifest. Throws NotEnrolled. */
export async function enrol(places: Places, api: string, token: string): Promise<Enrolled> {
  return await keepEnrolment(places, { api, ca: null }, { token })
}

type Enrolled = { device: string; manifest: string }

type ConnectOptions = {
  api: string
  token: string
  /** SHA-256 of the certificate authority (PEM), if the site signs its certificates itself. */
  caSha256: string | null
  /**
   * Allows http to another machine, where an attacker on the network can pose as the control plane.
   */
  isPlainAllowed: boolean
}

/**
 * Enrols an agent that connects to the API: makes a key, sends its public half, and stores the
 * API's address. The authority is trusted only because of its digest, which came with the token. No
 * other answer over an unproven connection is trusted.
 */
export async function enrolToConnect(places: Places, options: ConnectOptions): Promise<Enrolled> {
  const { token, caSha256, isPlainAllowed } = options
  const api = requireApi(options.api, isPlainAllowed)
  if (caSha256 !== null && !/^[0-9a-f]{64}$/i.test(caSha256))
    throw new NotEnrolled(
      'bad address',
      `--ca-sha256 needs 64 hexadecimal digits, and this has ${caSha256.length} characters: copy the whole line of "nightshift mesh enroll". The token is still valid.`,
    )
  const ca = caSha256 === null ? null : await fetchAuthority(api, caSha256)
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const enrolled = await keepEnrolment(places, { api, ca }, { token, agent_key: writePublicKey(publicKey) })
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
  replace(filesOf(places).connection, `${JSON.stringify({ api, ca, key, isPlainAllowed })}\n`)
  return enrolled
}

async function keepEnrolment(
  places: Places,
  { api, ca }: { api: string; ca: string | null },
  shown: { token: string; agent_key?: string },
): Promise<Enrolled> {
  const files = filesOf(places)
  // Checks the files before it sends the token, because the token is valid for only one response,
  // which must be stored.
  requireOurs([files.refresh, files.rootKey, files.manifest])
  const answer = parsed(enrolment, await ask({ api, ca }, 'enrolments', shown))
  const id = believed(answer.manifest, answer.root_public_key, answer.device)
  pinName(places.state, answer.device)
  replace(files.rootKey, `${answer.root_public_key}\n`)
  keepManifest(places, answer.manifest)
  replace(files.refresh, `${JSON.stringify({ api, ca, token: answer.refresh_token })}\n`)
  return { device: answer.device, manifest: id }
}

/** Stores a manifest that came over the connection, if the root key signed it for this device. */
export function keepIfBelieved(places: Places, manifest: Record<string, unknown>, device: string): void {
  believed(manifest, readOr(filesOf(places).rootKey).trim(), device)
  keepManifest(places, manifest)
}

function keepManifest(places: Places, manifest: Record<string, unknown>): void {
  replace(filesOf(places).manifest, `${JSON.stringify(manifest, null, 2)}\n`)
}

/** Reads the address and key of an agent that connects to the API, or throws NotEnrolled. */
export function readConnection(places: Places): z.infer<typeof connection> {
  const { connection: file } = filesOf(places)
  const remedy =
    'run "nightshift mesh enroll NAME --mode user" on the control plane, then run the line that it prints on this host'
  return readKept(connection, file, `This host is not enrolled to call out (${file} does not exist): ${remedy}.`)
}

/**
 * Reads a file of the enrolment. Throws for an incomplete or changed file: the device must be
 * enrolled again.
 */
function readKept<T>(schema: z.ZodType<T>, file: string, absent?: string): T {
  const found = schema.safeParse(readObject(readOr(file, absent)))
  if (found.success) return found.data
  throw new NotEnrolled('unbelievable', `${file} is damaged: enrol this host again with a new token.`)
}

/** Changes the address of the control plane, whose root key stays pinned. */
export function moveConnection(places: Places, api: string, isPlainAllowed: boolean): void {
  requireOurs([filesOf(places).connection])
  const kept = readConnection(places)
  const moved = { ...kept, api: requireApi(api, isPlainAllowed), isPlainAllowed }
  replace(filesOf(places).connection, `${JSON.stringify(moved)}\n`)
}

/** Fetches the present manifest and returns its id. Throws NotEnrolled. */
export async function renew(places: Places): Promise<string> {
  const files = filesOf(places)
  requireOurs([files.manifest])
  const { api, ca, token } = readKept(kept, files.refresh)
  const { manifest } = parsed(refreshed, await ask({ api, ca }, 'manifests', { token }))
  const id = believed(manifest, readOr(files.rootKey).trim(), null)
  keepManifest(places, manifest)
  return id
}

export function filesOf({ state, manifest, rootKey }: Places) {
  return {
    manifest: manifest ?? join(state, 'manifest.json'),
    rootKey: rootKey ?? join(state, 'root-key'),
    refresh: join(state, 'refresh.json'),
    connection: join(state, 'connection.json'),
  }
}

/** Returns the manifest's id if the root key signed it. Nothing is stored before this check. */
function believed(manifest: Record<string, unknown>, rootKey: string, device: string | null): string {
  const key = readPublicKey(rootKey)
  if (!key) throw new NotEnrolled('unbelievable', 'The control plane gave no ed25519 root key.')
  const trusted = trustManifest(JSON.stringify(manifest), { rootKey: key, device, nowMs: Date.now() })
  if (!trusted.ok) throw new NotEnrolled('unbelievable', `Nothing was changed: ${trusted.reason}.`)
  return trusted.trusted.manifest.id
}

async function ask(
  { api, ca }: { api: string; ca: string | null },
  resource: 'enrolments' | 'manifests',
  shown: { token: string; agent_key?: string },
): Promise<unknown> {
  const url = URL.parse(`/mesh/${resource}`, api)
  if (!url) throw new NotEnrolled('bad address', `${api} is not the address of a control plane.`)
  if (
    url.protocol !== 'https:' &&
    !isThisMachine(url.hostname) &&
    !isPrivate(url.hostname) &&
    shown.agent_key === undefined
  ) {
    throw new NotEnrolled(
      'bad address',
      'The root key must come over https or a private network, because anybody on the network path could replace it.',
    )
  }
  const { status, text } = await exchange(url, { ca, body: JSON.stringify(shown) })
  const body = readObject(text)
  if (status >= 200 && status < 300) return body
  const detail = typeof body.detail === 'string' ? body.detail : `it answered ${status}`
  if (status === 422 && shown.agent_key !== undefined)
    throw new NotEnrolled(
      'unbelievable',
      `${url.origin} does not accept agents that call out (${detail}): upgrade the control plane to version ${version}. The token is still valid.`,
    )
  throw new NotEnrolled(status === 403 ? 'refused' : status === 409 ? 'bad address' : 'unreachable', detail)
}

function readObject(text: string): { detail?: unknown } {
  try {
    return (JSON.parse(text) as { detail?: unknown } | null) ?? {}
  } catch {
    return {}
  }
}

/**
 * Checks the address of a control plane. Allows plain http only to this machine or by permission,
 * because an attacker on the network could send a false root key.
 */
function requireApi(text: string, isPlainAllowed: boolean): string {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new NotEnrolled('bad address', `${text} is not the address of a control plane: write https://….`)
  if (url.protocol === 'https:' || isThisMachine(url.hostname) || isPlainAllowed) return url.origin
  throw new NotEnrolled(
    'bad address',
    `${url.origin} is plain http to another machine: anybody on the network path could pose as the control plane. Use https (docs/how-to/production.md), or --insecure-http if you know every machine on that path.`,
  )
}

const maxAnswerBytes = 200_000
/** Milliseconds for the complete exchange, even if the peer sends a byte now and then. */
const maxExchangeMs = 30_000

/**
 * Fetches the certificate authority over an unproven connection, and trusts it only because of its
 * digest.
 */
async function fetchAuthority(api: string, sha256: string): Promise<string> {
  const { status, text } = await exchange(new URL('/mesh/authority', api), { ca: null, isUnproven: true })
  const found = createHash('sha256').update(text).digest('hex')
  if (status === 200 && found === sha256.toLowerCase()) return text
  const why = status === 200 ? `its certificate authority has the digest ${found}` : `it answered ${status}`
  throw new NotEnrolled(
    'unbelievable',
    `${api} did not show the certificate authority with the digest ${sha256} (${why}): an attacker may intercept the connection, or another control plane printed the token.`,
  )
}

type Exchange = { ca: string | null; body?: string; isUnproven?: boolean }

/**
 * Sends one request and accepts any status. Uses `node:https`, because a fetch keeps its client in
 * memory.
 */
function exchange(url: URL, { ca, body, isUnproven = false }: Exchange): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const headers = { ...(body !== undefined && { 'content-type': 'application/json' }), connection: 'close' }
  const ends = AbortSignal.timeout(maxExchangeMs)
  const options = { method: body === undefined ? 'GET' : 'POST', headers, signal: ends }
  const sent =
    url.protocol === 'https:'
      ? overHttps(url, { ...options, ...authoritiesOf(ca), rejectUnauthorized: !isUnproven })
      : overHttp(url, options)
  const fail = (error: Error) => {
    const why = ends.aborted ? new Error(`no complete response within ${maxExchangeMs / 1000} s`) : error
    reject(new NotEnrolled('unreachable', `${describeUnreached(url.origin, why, ca !== null)}.`))
  }
  sent.once('error', fail)
  sent.once('response', (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text += chunk
      if (text.length > maxAnswerBytes) sent.destroy(new Error('the response is too large'))
    })
    response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    response.once('error', fail)
  })
  sent.end(body)
  return promise
}

/**
 * Returns the certificate authorities for TLS: the pinned authority, or else the machine's, or else
 * Node's.
 */
export function authoritiesOf(ca: string | null): { ca?: string | string[] } {
  if (ca !== null) return { ca }
  const system = getCACertificates('system')
  return system.length > 0 ? { ca: system } : {}
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const found = schema.safeParse(value)
  if (found.success) return found.data
  throw new NotEnrolled('unbelievable', 'The response is not from a control plane. Is the address right?')
}

/**
 * Whether a host is on a private network. A name without dots, such as that of a service, counts as
 * private.
 */
function isPrivate(host: string): boolean {
  const address = host.replaceAll(/[[\]]/g, '')
  // Checks first whether the host is an address: a name may begin like an address, and an IPv6
  // address has no dots.
  if (isIP(address) === 0) return !host.includes('.')
  return /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|f[cd])/.test(address)
}

function requireOurs(files: readonly string[]): void {
  const why = [...new Set(files.map(dirname))].map(whyNotOurs).find((found) => found !== null)
  if (why)
    throw new NotEnrolled(
      'not ours',
      `${why}: run this command as the user that runs the agent (sudo -u nightshift-agent …), or name another folder with --state. Nothing was changed, and the token stays valid.`,
    )
}

function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

function readOr(file: string, absent = `${file} does not exist: is this device enrolled?`): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new NotEnrolled('not enrolled', absent)
    throw new NotEnrolled(
      'not ours',
      `${file} cannot be read (${code}): run this command as the user that enrolled this host, or give that user's files to the agent's (chown).`,
    )
  }
}

/**
 * Runs as a child process, `enrolment.ts '<Places as JSON>'`: fetches the manifest. Prints its id
 * and exits with 0; or prints why not, and exits with 1 (try later) or 2 (refused).
 */
if (import.meta.main) {
  try {
    console.log(await renew(JSON.parse(process.argv[2] ?? '{}') as Places))
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = error instanceof NotEnrolled && error.why === 'refused' ? 2 : 1
  }
}
