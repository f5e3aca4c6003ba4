import { readFileSync } from 'node:fs'
import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'

/**
 * Is the agent that listens at `MESH_LISTEN` ready? Ends with 0 if so, else with 1 and the reason:
 * the health check of the container.
 */
const listen = process.env.MESH_LISTEN ?? '127.0.0.1:7474'

type HealthResponse = { ok: true; body: string } | { ok: false; reason: string }

function ask(scheme: 'http' | 'https'): Promise<HealthResponse> {
  const options = { path: '/health', timeout: 5_000 }
  return new Promise((resolve) => {
    const url = `${scheme}://${listen}/health`
    // This machine asks itself: whose certificate it is does not matter here.
    const sent = scheme === 'http' ? overHttp(url, options) : overHttps(url, { ...options, rejectUnauthorized: false })
    sent.once('timeout', () => sent.destroy(new Error('no answer within 5 s')))
    sent.once('error', (error) => resolve({ ok: false, reason: error.message }))
    sent.once('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        body += chunk
      })
      response.once('end', () => resolve({ ok: true, body }))
      response.once('error', (error) => resolve({ ok: false, reason: error.message }))
    })
    sent.end()
  })
}

function wrongWith(response: HealthResponse): string | null {
  if (!response.ok) return response.reason
  try {
    const { status, reason } = JSON.parse(response.body) as { status?: unknown; reason?: unknown }
    return status === 'ready' ? null : `it refuses: ${reason}`
  } catch {
    return 'this is no agent'
  }
}

const plain = await ask('http')
const wrong = wrongWith(plain.ok ? plain : await ask('https'))
if (wrong !== null) {
  console.error(`The agent at ${listen} is not ready: ${wrong}.`)
  process.exitCode = 1
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
