import { createHash, generateKeyPairSync } from 'node:crypto'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { join } from 'node:path'
import { getCACertificates } from 'node:tls'
import { z } from 'zod'
import { isThisMachine } from '../../domain/mesh-connection.ts'
import { version } from '../../domain/version.ts'
import { readPublicKey, writePublicKey } from '../sign.ts'
import { trustManifest } from './manifest.ts'
import { describeUnreached } from './unreached.ts'

/**
 * Where an enrolled device keeps what it was given; the last two stand in the state directory
 * unless they are named.
 */
export type Places = { state: string; manifest?: string; rootKey?: string }

/**
 * Nothing was changed. `refused` is the control plane's answer to the token: asking again does not
 * help.
 */
export class NotEnrolled extends Error {
  override name = 'NotEnrolled' as const
  readonly why: 'refused' | 'unreachable' | 'unbelievable' | 'not enrolled' | 'bad address'
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

/** Shows the one-time token, pins the root key and keeps the first manifest. Throws NotEnrolled. */
export async function enrol(places: Places, api: string, token: string): Promise<Enrolled> {
  return await keepEnrolment(places, { api, ca: null }, { token })
}

type Enrolled = { device: string; manifest: string }

type ConnectOptions = {
  api: string
  token: string
  /** SHA-256 of the token's authority (PEM), where the site signs its own certificates. */
  caSha256: string | null
  /** Over http to another machine: who is on the way can be the control plane. */
  isPlainAllowed: boolean
}

/**
 * The same for an agent that calls out: it makes a key, tells the control plane the public half,
 * and keeps where to call. The authority is believed by the token's digest; nothing else of an
 * unproven connection is.
 */
export async function enrolToConnect(places: Places, options: ConnectOptions): Promise<Enrolled> {
  const { token, caSha256, isPlainAllowed } = options
  const api = requireApi(options.api, isPlainAllowed)
  if (caSha256 !== null && !/^[0-9a-f]{64}$/i.test(caSha256))
    throw new NotEnrolled(
      'bad address',
      `--ca-sha256 takes 64 hexadecimal digits, and this has ${caSha256.length} characters: copy the line of "nightshift mesh enroll" whole. The token is still good.`,
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
  const answer = parsed(enrolment, await ask({ api, ca }, 'enrolments', shown))
  const files = filesOf(places)
  const id = believed(answer.manifest, answer.root_public_key, answer.device)
  replace(files.rootKey, `${answer.root_public_key}\n`)
  keepManifest(places, answer.manifest)
  replace(files.refresh, `${JSON.stringify({ api, ca, token: answer.refresh_token })}\n`)
  return { device: answer.device, manifest: id }
}

/** Keeps a manifest that came over the connection, where the root key signed it for this device. */
export function keepIfBelieved(places: Places, manifest: Record<string, unknown>, device: string): void {
  believed(manifest, readOr(filesOf(places).rootKey).trim(), device)
  keepManifest(places, manifest)
}

function keepManifest(places: Places, manifest: Record<string, unknown>): void {
  replace(filesOf(places).manifest, `${JSON.stringify(manifest, null, 2)}\n`)
}

/** The address and proof of an agent that calls out. Throws NotEnrolled for one not enrolled so. */
export function readConnection(places: Places): z.infer<typeof connection> {
  const { connection: file } = filesOf(places)
  if (!existsSync(file)) {
    const words = `This host has not enrolled to call out (${file} is not there): run "nightshift mesh enroll NAME --mode user" on the control plane, and here the line that it prints`
    throw new NotEnrolled('not enrolled', `${words}.`)
  }
  return readKept(connection, file)
}

/** What an enrolment kept. A file that was cut off or changed by hand has to be made again. */
function readKept<T>(schema: z.ZodType<T>, file: string): T {
  const found = schema.safeParse(readObject(readOr(file)))
  if (found.success) return found.data
  throw new NotEnrolled('unbelievable', `${file} is damaged: enrol this host again with a new token.`)
}

/** The control plane is somewhere else now; it is still the one whose root key is pinned. */
export function moveConnection(places: Places, api: string, isPlainAllowed: boolean): void {
  const kept = readConnection(places)
  const moved = { ...kept, api: requireApi(api, isPlainAllowed), isPlainAllowed }
  replace(filesOf(places).connection, `${JSON.stringify(moved)}\n`)
}

/** Fetches the manifest as it is now and answers its id. Throws NotEnrolled. */
export async function renew(places: Places): Promise<string> {
  const files = filesOf(places)
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

/** The manifest's id, when the root key signed it; nothing is kept before that. */
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
  if (!url) throw new NotEnrolled('bad address', `${api} is no address of a control plane.`)
  if (
    url.protocol !== 'https:' &&
    !isThisMachine(url.hostname) &&
    !isPrivate(url.hostname) &&
    shown.agent_key === undefined
  ) {
    throw new NotEnrolled(
      'bad address',
      'The root key comes over https, or over a private network: anybody on the way could be it.',
    )
  }
  const { status, text } = await exchange(url, { ca, body: JSON.stringify(shown) })
  const body = readObject(text)
  if (status >= 200 && status < 300) return body
  const detail = typeof body.detail === 'string' ? body.detail : `it answered ${status}`
  if (status === 422 && shown.agent_key !== undefined)
    throw new NotEnrolled(
      'unbelievable',
      `${url.origin} does not take agents that call out (${detail}): bring the control plane to version ${version}. The token is still good.`,
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

/** Plain http is for this machine: anybody on the way to another could give us their root key. */
function requireApi(text: string, isPlainAllowed: boolean): string {
  const url = URL.parse(text)
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new NotEnrolled('bad address', `${text} is no address of a control plane: write https://….`)
  if (url.protocol === 'https:' || isThisMachine(url.hostname) || isPlainAllowed) return url.origin
  throw new NotEnrolled(
    'bad address',
    `${url.origin} is plain http to another machine: anybody on the network path could pose as the control plane. Use https (docs/how-to/production.md), or --insecure-http where you know every machine on that path.`,
  )
}

const maxAnswerBytes = 200_000
/** The whole exchange, also with one who sends a byte now and then. */
const maxExchangeMs = 30_000

/** Fetches the authority over an unproven connection, and believes it by its digest alone. */
async function fetchAuthority(api: string, sha256: string): Promise<string> {
  const { status, text } = await exchange(new URL('/mesh/authority', api), { ca: null, isUnproven: true })
  const found = createHash('sha256').update(text).digest('hex')
  if (status === 200 && found === sha256.toLowerCase()) return text
  const why = status === 200 ? `its authority has the digest ${found}` : `it answered ${status}`
  throw new NotEnrolled(
    'unbelievable',
    `${api} did not give the authority with the digest ${sha256} (${why}): somebody may be in between, or the token was printed by another control plane.`,
  )
}

type Exchange = { ca: string | null; body?: string; isUnproven?: boolean }

/** One request, any status. By `node:https`: a fetch keeps its client in the caller's memory. */
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
    const why = ends.aborted ? new Error(`no whole answer within ${maxExchangeMs / 1000} s`) : error
    reject(new NotEnrolled('unreachable', `${describeUnreached(url.origin, why, ca !== null)}.`))
  }
  sent.once('error', fail)
  sent.once('response', (response) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (chunk: string) => {
      text += chunk
      if (text.length > maxAnswerBytes) sent.destroy(new Error('its answer is too large'))
    })
    response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    response.once('error', fail)
  })
  sent.end(body)
  return promise
}

/** TLS' authorities: the pinned one, else the machine's, else Node's. */
export function authoritiesOf(ca: string | null): { ca?: string | string[] } {
  if (ca !== null) return { ca }
  const system = getCACertificates('system')
  return system.length > 0 ? { ca: system } : {}
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const found = schema.safeParse(value)
  if (found.success) return found.data
  throw new NotEnrolled('unbelievable', 'What was answered is no enrolment: is this the address of the control plane?')
}

/**
 * A name without dots resolves on a private network alone, as that of a service beside this one.
 */
function isPrivate(host: string): boolean {
  return (
    /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|\[f[cd])/.test(host) ||
    !host.includes('.')
  )
}

function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text, { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

function readOr(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    throw new NotEnrolled('not enrolled', `${file} cannot be read: is this device enrolled?`)
  }
}

/**
 * `enrolment.ts '<Places as JSON>'`: fetches the manifest. Ends with 0 and its id, or with 1
 * (ask later) or 2 (refused), and why.
 */
if (import.meta.main) {
  try {
    console.log(await renew(JSON.parse(process.argv[2] ?? '{}') as Places))
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = error instanceof NotEnrolled && error.why === 'refused' ? 2 : 1
  }
}
