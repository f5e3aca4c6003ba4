import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'
import { whyNotConnected } from './standing.ts'

type HealthResponse = { ok: true; body: string } | { ok: false; reason: string }

/**
 * Returns why this host's agent is not ready, without a full stop at the end. Null for a ready
 * agent. `listen` is the address of an agent that does not connect to the API.
 */
export async function whyNotReady(state: string, listen: string): Promise<string | null> {
  const calling = whyNotConnected(state)
  if (calling === null) return null
  if (calling !== undefined) return `The agent of ${state} is not ready: ${calling}`
  const plain = await ask(listen, 'http')
  const wrong = responseFault(plain.ok ? plain : await ask(listen, 'https'))
  return wrong === null ? null : `The agent at ${listen} is not ready: ${wrong}`
}

function ask(listen: string, scheme: 'http' | 'https'): Promise<HealthResponse> {
  const options = { path: '/health', signal: AbortSignal.timeout(5_000) }
  return new Promise((resolve) => {
    const url = `${scheme}://${listen}/health`
    // Does not check the certificate, because this machine sends the request to itself.
    const sent = scheme === 'http' ? overHttp(url, options) : overHttps(url, { ...options, rejectUnauthorized: false })
    const fail = ({ name, message }: Error) =>
      resolve({ ok: false, reason: name === 'AbortError' ? 'no answer within 5 s' : message })
    sent.once('error', fail)
    sent.once('response', (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk) => {
        body += chunk
      })
      response.once('end', () => resolve({ ok: true, body }))
      response.once('error', fail)
    })
    sent.end()
  })
}

function responseFault(response: HealthResponse): string | null {
  if (!response.ok) return response.reason
  try {
    const { status, reason } = JSON.parse(response.body) as { status?: unknown; reason?: unknown }
    return status === 'ready' ? null : `it refuses: ${reason}`
  } catch {
    return 'this is not an agent'
  }
}
