import type { KeyObject } from 'node:crypto'
import { readFileSync, realpathSync } from 'node:fs'
import { access } from 'node:fs/promises'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { resolve } from 'node:path'
import { type Manifest, type MeshErrorCode, manifest } from '../../domain/mesh.ts'
import { nameFaults } from '../../domain/schema-faults.ts'
import { forbiddenRedirection } from '../../safety/command/blocklist.ts'
import type { Word } from '../../safety/command/parse.ts'
import { isSigned, readPublicKey } from '../sign.ts'
import { isInside, kindOfSystemPath, plainRoot } from '../specs/spec.ts'
import { type CallWeight, CapabilityError } from './capability.ts'

type TrustedKey = { key: KeyObject; notAfterMs: number | null }
export type TrustedKeys = ReadonlyMap<string, TrustedKey>

/** A manifest with a valid signature, the keys in it, and its end in milliseconds since 1970. */
export type TrustedManifest = { manifest: Manifest; keys: TrustedKeys; expiresMs: number }

/**
 * Reads a manifest and checks it against the pinned root key and the device's name. Refuses an
 * unsigned, altered, expired or foreign manifest, with the reason. `device` is null before the
 * first manifest, which then gives the name.
 */
export function trustManifest(
  text: string,
  { rootKey, device, nowMs }: { rootKey: KeyObject; device: string | null; nowMs: number },
): { ok: true; trusted: TrustedManifest } | { ok: false; reason: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, reason: 'the manifest is not JSON' }
  }
  if (typeof value === 'object' && value !== null && !('signature' in value))
    return { ok: false, reason: 'the manifest is unsigned' }
  const parsed = manifest.safeParse(value)
  if (!parsed.success) {
    return { ok: false, reason: `the manifest is invalid: ${nameFaults(parsed.error, { max: 1 })}` }
  }
  // Checks the signature of the received text, because defaults of the schema were not signed.
  if (!isSigned(value as { signature: string }, rootKey)) {
    return { ok: false, reason: 'the manifest was altered, or the root key did not sign it' }
  }
  const found = parsed.data
  if (device !== null && found.device !== device)
    return { ok: false, reason: `the manifest is for ${found.device}, and this device is ${device}` }
  const expiresMs = Date.parse(found.expires_at)
  if (expiresMs <= nowMs) return { ok: false, reason: `the manifest expired at ${found.expires_at}` }
  const keys = new Map<string, TrustedKey>()
  for (const { id, public_key, not_after } of found.keys) {
    const key = readPublicKey(public_key)
    if (!key) return { ok: false, reason: `the manifest's key ${id} is not an ed25519 key` }
    if (keys.has(id)) return { ok: false, reason: `the manifest names key ${id} twice` }
    keys.set(id, { key, notAfterMs: not_after === null ? null : Date.parse(not_after) })
  }
  return { ok: true, trusted: { manifest: found, keys, expiresMs } }
}

/** Returns the key with this id if it may still sign. */
export function keyOf(keys: TrustedKeys, id: string, nowMs: number): KeyObject | null {
  const found = keys.get(id)
  return found && (found.notAfterMs === null || nowMs < found.notAfterMs) ? found.key : null
}

export type AgentAddress = { host: string; port: number }

/**
 * Reads `127.0.0.1:7474` or `[::1]:7474`. Null for anything else, because a name could later
 * resolve to another address.
 */
export function readAddress(text: string): AgentAddress | null {
  const found = /^(?:\[([0-9a-f:]+)\]|([0-9.]+)):(\d{1,5})$/i.exec(text)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  return host && isIP(host) !== 0 && port <= 65_535 ? { host, port } : null
}

/**
 * Returns why the agent may not listen at an address without TLS. Null for a loopback address or an
 * address of a WireGuard tunnel.
 */
export function whyTls(
  { host }: AgentAddress,
  isWireguard: (name: string) => boolean = isWireguardDevice,
): string | null {
  if (/^127\./.test(host) || host === '::1') return null
  const owner = Object.entries(networkInterfaces()).find(([, all]) => all?.some(({ address }) => address === host))
  if (owner && isWireguard(owner[0])) return null
  return `${host} is neither a loopback nor a WireGuard address: set --tls-cert and --tls-key`
}

function isWireguardDevice(name: string): boolean {
  try {
    return /^DEVTYPE=wireguard$/m.test(readFileSync(`/sys/class/net/${name}/uevent`, 'utf8'))
  } catch {
    return false
  }
}

/** A plain absolute path inside one of the manifest's roots, judged only by its text. */
export type ManifestPath = { path: string; segments: readonly string[]; writable: boolean }
export type PathRejection = { code: MeshErrorCode; message: string }

/**
 * Reads a path. The innermost root that contains it decides whether it may be written. `walk.ts`
 * later follows no symbolic links, so that the text names the real place.
 */
export function parsePlace(path: string, manifest: Manifest): ManifestPath | PathRejection {
  const segments = path.split('/').filter((segment) => segment !== '')
  const wrong = pathFault(path, segments)
  if (wrong) return { code: 'invalid_arguments', message: wrong }
  const plain = `/${segments.join('/')}`
  if (segments[0] === 'proc')
    return { code: 'outside_roots', message: '/proc can lead to any file: use proc.list for processes' }
  const root = manifest.roots
    .map((root) => ({ ...root, path: plainRoot(root.path) }))
    .filter((root) => isInside(plain, root.path))
    .sort((a, b) => b.path.length - a.path.length)[0]
  if (!root)
    return { code: 'outside_roots', message: `${plain} is outside the roots of this device${rootsOf(manifest)}` }
  return { path: plain, segments, writable: root.writable }
}

function pathFault(path: string, segments: readonly string[]): string | null {
  if (!path.startsWith('/')) return 'the path is not absolute'
  if (path.includes('\0')) return 'the path has a NUL'
  if (!path.isWellFormed()) return 'the path is not valid Unicode'
  if (segments.some((segment) => segment === '.' || segment === '..')) return 'the path has . or ..'
  if (segments.some((segment) => Buffer.byteLength(segment) > 255)) return 'a name in the path is too long'
  return null
}

const rootsOf = ({ roots }: Manifest) =>
  roots.length === 0 ? ', which has none' : `: ${roots.map((root) => root.path).join(', ')}`

const wordOf = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })

/**
 * Whether this path may be read only with approval. A dry run, which has no approval, does not show
 * its content either.
 */
export const isSecret = (path: string): boolean => kindOfSystemPath(path) !== null

/**
 * Judges the read of a path. Only a path that is secret by the rules for commands needs approval.
 */
export function weighRead(path: string, manifest: Manifest): CallWeight {
  const place = parsePlace(path, manifest)
  if ('code' in place) return refusedFor(place)
  const held = kindOfSystemPath(place.path)
  if (held === 'endless') return { effect: 'refused', reason: `${place.path} does not end`, command: null }
  if (held) return { effect: 'write', reason: `${place.path} is not shown without approval`, command: null }
  return { effect: 'read', reason: 'only reads', command: null }
}

/**
 * Judges a read that shows only the kind of a file and no content. A listing of the file's
 * directory shows just as much.
 */
export function weighLook(path: string, manifest: Manifest): CallWeight {
  const place = parsePlace(path, manifest)
  return 'code' in place ? refusedFor(place) : { effect: 'read', reason: 'only reads', command: null }
}

/**
 * Judges the change of a path. It always needs approval, and is refused for a path that no command
 * may write.
 */
export function weighWrite(path: string, manifest: Manifest): CallWeight {
  const place = parsePlace(path, manifest)
  if ('code' in place) return refusedFor(place)
  if (!place.writable) return refusedFor(readOnly(place))
  const never = forbiddenRedirection({ operator: '>', target: wordOf(place.path), source: '' }, [])
  if (never)
    return { effect: 'refused', reason: `${place.path} is never written, even with an approval`, command: null }
  return { effect: 'write', reason: `changes ${place.path}`, command: null }
}

const readOnly = ({ path }: ManifestPath): PathRejection => ({
  code: 'outside_roots',
  message: `${path} is below a read-only root`,
})

const refusedFor = ({ code, message }: PathRejection): CallWeight => ({
  effect: 'refused',
  reason: message,
  code,
  command: null,
})

type AgentPaths = { state: string; hidden: readonly string[] }

/**
 * Returns the checked path for a caller that is about to open it. Throws the refusal of `weigh`.
 * Refuses the agent's files.
 */
export function requirePlace(
  path: string,
  manifest: Manifest,
  own: AgentPaths,
  access: 'look' | 'change',
): ManifestPath {
  const place = parsePlace(path, manifest)
  if ('code' in place) throw new CapabilityError(place.code, place.message)
  if (ownPaths(own)(place.path)) throw new CapabilityError('outside_roots', `${place.path} belongs to the agent`)
  if (access === 'change' && !place.writable) throw new CapabilityError('outside_roots', readOnly(place).message)
  return place
}

/**
 * Returns a function that tells whether a path belongs to the agent. Resolves the agent's own paths
 * only once.
 */
export function ownPaths({ state, hidden }: AgentPaths): (path: string) => boolean {
  const own = [state, ...hidden].map(realPath)
  return (path) => own.some((each) => isInside(path, each))
}

/** Resolves symbolic links, because `walk.ts` follows none and therefore compares real paths. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}

/**
 * Returns what `fs.*` lacks: roots to stay inside, or /proc, through which directories are held
 * open. Null if nothing is missing.
 */
export async function missingProc(manifest: Manifest): Promise<string | null> {
  if (manifest.roots.length === 0) return 'the manifest names no roots'
  try {
    await access('/proc/self/fd')
    return null
  } catch {
    return '/proc is not mounted, and without it no path can be walked safely'
  }
}

export async function missingWritableRoot(manifest: Manifest): Promise<string | null> {
  if (manifest.roots.length > 0 && !manifest.roots.some(({ writable }) => writable))
    return 'the manifest names no writable root'
  return missingProc(manifest)
}
