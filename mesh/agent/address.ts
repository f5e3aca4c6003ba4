import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

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
