import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { trustManifest } from '../../mesh/agent/manifest.ts'
import { readPublicKey } from '../../mesh/sign.ts'
import { CommandFailed } from '../exit-code.ts'
import { inert } from '../inert.ts'
import { note } from '../terminal.ts'

const enrolment = z.looseObject({
  device: z.string(),
  root_public_key: z.string(),
  manifest: z.record(z.string(), z.unknown()),
  refresh_token: z.string(),
})
const refreshed = z.looseObject({ manifest: z.record(z.string(), z.unknown()) })
const kept = z.looseObject({ api: z.string(), token: z.string() })

type Places = { state: string; manifest?: string; rootKey?: string }

/** On the device: pins the control plane's root key and keeps the first manifest. */
export function enrollAgent(agent: Command): void {
  agent
    .command('enroll')
    .description('join: pin the root key and fetch the first manifest, with the token that "mesh enroll" printed')
    .requiredOption('--api <url>', 'where the control plane is')
    .requiredOption('--token <token>', 'good once, for 15 minutes')
    .addHelpText(
      'after',
      '\nExample:\n  nightshift mesh agent enroll --api https://nightshift.example.com --token nst_…',
    )
    .action(async (_: unknown, command: Command) => {
      const { api, token, ...places } = command.optsWithGlobals<Places & { api: string; token: string }>()
      const answer = enrolment.parse(await ask(api, 'enrolments', token))
      const files = filesOf(places)
      mkdirSync(places.state, { recursive: true, mode: 0o700 })
      const id = believed(answer.manifest, answer.root_public_key, answer.device)
      replace(files.rootKey, `${answer.root_public_key}\n`)
      replace(files.manifest, `${JSON.stringify(answer.manifest, null, 2)}\n`)
      replace(files.refresh, `${JSON.stringify({ api, token: answer.refresh_token })}\n`)
      note(`${inert(answer.device)} is enrolled with manifest ${inert(id)}. Next: nightshift mesh agent`)
    })

  agent
    .command('refresh')
    .description('fetch the manifest as it is now, and tell the running agent; for a timer, daily')
    .addHelpText('after', '\nExample:\n  nightshift mesh agent refresh')
    .action(async (_: unknown, command: Command) => {
      const places = command.optsWithGlobals<Places>()
      const files = filesOf(places)
      const { api, token } = kept.parse(JSON.parse(readOr(files.refresh)))
      const { manifest } = refreshed.parse(await ask(api, 'manifests', token))
      const text = readOr(files.rootKey).trim()
      const id = believed(manifest, text, null)
      replace(files.manifest, `${JSON.stringify(manifest, null, 2)}\n`)
      const told = tellAgent(places.state)
      note(`Manifest ${inert(id)} is here${told ? ', and the agent was told' : '; no agent runs'}.`)
    })
}

function filesOf({ state, manifest, rootKey }: Places) {
  return {
    manifest: manifest ?? join(state, 'manifest.json'),
    rootKey: rootKey ?? join(state, 'root-key'),
    refresh: join(state, 'refresh.json'),
  }
}

/** The manifest's id, when the root key signed it; nothing is kept before that. */
function believed(manifest: Record<string, unknown>, rootKey: string, device: string | null): string {
  const key = readPublicKey(rootKey)
  if (!key) throw new CommandFailed('error', 'The control plane gave no ed25519 root key.')
  const trusted = trustManifest(JSON.stringify(manifest), { rootKey: key, device, nowMs: Date.now() })
  if (!trusted.ok) throw new CommandFailed('error', `Nothing was changed: ${trusted.reason}.`)
  return trusted.trusted.manifest.id
}

async function ask(api: string, door: string, token: string): Promise<unknown> {
  const url = new URL(`/mesh/${door}`, api)
  const isNear = ['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname)
  if (url.protocol !== 'https:' && !isNear && !isPrivate(url.hostname)) {
    throw new CommandFailed(
      'usage',
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
    throw new CommandFailed('error', `${url.origin} was not reached: ${error.cause ?? error.message}`)
  })
  const body = (await response.json().catch(() => ({}))) as { detail?: unknown }
  if (response.ok) return body
  const detail = typeof body.detail === 'string' ? inert(body.detail) : `it answered ${response.status}`
  throw new CommandFailed(response.status === 403 ? 'auth' : 'error', detail)
}

/** A name without dots resolves on a private network alone, as that of a service beside this one. */
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
    throw new CommandFailed('notFound', `${file} cannot be read: is this device enrolled?`)
  }
}

function tellAgent(state: string): boolean {
  try {
    const pid = Number(readFileSync(join(state, 'agent.lock'), 'utf8').split(' ')[0])
    if (!Number.isInteger(pid) || pid < 2) return false
    process.kill(pid, 'SIGHUP')
    return true
  } catch {
    return false
  }
}
