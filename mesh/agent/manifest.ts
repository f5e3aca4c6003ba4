import type { KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { type Manifest, manifest } from '../../domain/mesh.ts'
import { isSigned, readPublicKey } from '../sign.ts'

export type TrustedKey = { key: KeyObject; notAfterMs: number | null }
export type TrustedKeys = ReadonlyMap<string, TrustedKey>

/** A manifest whose signature holds, with its keys ready to use. */
export type TrustedManifest = { manifest: Manifest; keys: TrustedKeys; expiresMs: number }

/**
 * Reads a manifest and holds it against the pinned root key and the device's own name. A manifest
 * that is unsigned, altered, expired or another device's is refused: the reason says which. `device`
 * is null before the first manifest, which then names it.
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
    const first = parsed.error.issues[0]
    return { ok: false, reason: `the manifest is not one: ${first?.path.join('.')} ${first?.message}`.trim() }
  }
  // Over the text as it came: what a default fills in was not signed.
  if (!isSigned(value as { signature: string }, rootKey)) {
    return { ok: false, reason: 'the manifest was altered, or the root key did not sign it' }
  }
  const found = parsed.data
  if (device !== null && found.device !== device)
    return { ok: false, reason: `the manifest is for ${found.device}, and this is ${device}` }
  const expiresMs = Date.parse(found.expires_at)
  if (expiresMs <= nowMs) return { ok: false, reason: `the manifest expired at ${found.expires_at}` }
  const keys = new Map<string, TrustedKey>()
  for (const { id, public_key, not_after } of found.keys) {
    const key = readPublicKey(public_key)
    if (!key) return { ok: false, reason: `the manifest's key ${id} is no ed25519 key` }
    if (keys.has(id)) return { ok: false, reason: `the manifest names key ${id} twice` }
    keys.set(id, { key, notAfterMs: not_after === null ? null : Date.parse(not_after) })
  }
  return { ok: true, trusted: { manifest: found, keys, expiresMs } }
}

/** The key of that name, if it may still sign. */
export function keyOf(keys: TrustedKeys, id: string, nowMs: number): KeyObject | null {
  const found = keys.get(id)
  return found && (found.notAfterMs === null || nowMs < found.notAfterMs) ? found.key : null
}

export type Address = { host: string; port: number }

/**
 * Reads `127.0.0.1:7474` or `[::1]:7474`; null for anything else: a name could lead elsewhere
 * tomorrow.
 */
export function readAddress(text: string): Address | null {
  const found = /^(?:\[([0-9a-f:]+)\]|([0-9.]+)):(\d{1,5})$/i.exec(text)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  return host && isIP(host) !== 0 && port <= 65_535 ? { host, port } : null
}

/**
 * Why the agent does not listen there without TLS; null when it may: on the machine itself, or
 * inside a WireGuard tunnel.
 */
export function whyTls({ host }: Address, isWireguard: (name: string) => boolean = isWireguardDevice): string | null {
  if (/^127\./.test(host) || host === '::1') return null
  const owner = Object.entries(networkInterfaces()).find(([, all]) => all?.some(({ address }) => address === host))
  if (owner && isWireguard(owner[0])) return null
  return `${host} is neither loopback nor an address of WireGuard: it needs --tls-cert and --tls-key`
}

function isWireguardDevice(name: string): boolean {
  try {
    return /^DEVTYPE=wireguard$/m.test(readFileSync(`/sys/class/net/${name}/uevent`, 'utf8'))
  } catch {
    return false
  }
}
