import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { readPublicKey } from '../sign.ts'
import { trustManifest } from './manifest.ts'

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
const kept = z.looseObject({ api: z.string(), token: z.string() })

/** Shows the one-time token, pins the root key and keeps the first manifest. Throws NotEnrolled. */
export async function enrol(places: Places, api: string, token: string): Promise<{ device: string; manifest: string }> {
  const answer = parsed(enrolment, await ask(api, 'enrolments', token))
  const files = filesOf(places)
  const id = believed(answer.manifest, answer.root_public_key, answer.device)
  replace(files.rootKey, `${answer.root_public_key}\n`)
  replace(files.manifest, `${JSON.stringify(answer.manifest, null, 2)}\n`)
  replace(files.refresh, `${JSON.stringify({ api, token: answer.refresh_token })}\n`)
  return { device: answer.device, manifest: id }
}

/** Fetches the manifest as it is now and answers its id. Throws NotEnrolled. */
export async function renew(places: Places): Promise<string> {
  const files = filesOf(places)
  const { api, token } = parsed(kept, JSON.parse(readOr(files.refresh)))
  const { manifest } = parsed(refreshed, await ask(api, 'manifests', token))
  const id = believed(manifest, readOr(files.rootKey).trim(), null)
  replace(files.manifest, `${JSON.stringify(manifest, null, 2)}\n`)
  return id
}

export function filesOf({ state, manifest, rootKey }: Places) {
  return {
    manifest: manifest ?? join(state, 'manifest.json'),
    rootKey: rootKey ?? join(state, 'root-key'),
    refresh: join(state, 'refresh.json'),
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

async function ask(api: string, resource: 'enrolments' | 'manifests', token: string): Promise<unknown> {
  const url = URL.parse(`/mesh/${resource}`, api)
  if (!url) throw new NotEnrolled('bad address', `${api} is no address of a control plane.`)
  const isNear = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
  if (url.protocol !== 'https:' && !isNear && !isPrivate(url.hostname)) {
    throw new NotEnrolled(
      'bad address',
      'The root key comes over https, or over a private network: anybody on the way could be it.',
    )
  }
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
    signal: AbortSignal.timeout(30_000),
    redirect: 'error',
  }).catch((error: Error) => {
    throw new NotEnrolled('unreachable', `${url.origin} was not reached: ${error.cause ?? error.message}`)
  })
  const body = (await response.json().catch(() => ({}))) as { detail?: unknown }
  if (response.ok) return body
  const detail = typeof body.detail === 'string' ? body.detail : `it answered ${response.status}`
  throw new NotEnrolled(response.status === 403 ? 'refused' : 'unreachable', detail)
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
