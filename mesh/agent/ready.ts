import { request as overHttp } from 'node:http'
import { request as overHttps } from 'node:https'

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

function responseFault(response: HealthResponse): string | null {
  if (!response.ok) return response.reason
  try {
    const { status, reason } = JSON.parse(response.body) as { status?: unknown; reason?: unknown }
    return status === 'ready' ? null : `it refuses: ${reason}`
  } catch {
    return 'this is no agent'
  }
}

const plain = await ask('http')
const wrong = responseFault(plain.ok ? plain : await ask('https'))
if (wrong !== null) {
  console.error(`The agent at ${listen} is not ready: ${wrong}.`)
  process.exitCode = 1
}
