import { randomUUID } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import { WebSocket } from 'ws'
import {
  closeCodes,
  connectionChallenge,
  connectionPath,
  connectionProtocol,
  connectionPurpose,
  controlWord,
} from '../../domain/mesh-connection.ts'
import { keepAlive, maxAskFrameBytes } from '../frames.ts'
import { type SigningKey, signed } from '../sign.ts'
import type { Agent } from './agent.ts'
import { authoritiesOf } from './enrolment.ts'
import { serveFrames } from './serve-frames.ts'
import { describeUnreached } from './unreached.ts'

/** What an agent that calls out was given when it enrolled, and what it proves itself with. */
type ConnectionTerms = {
  api: string
  /** PEM of the authority that is believed, instead of those of the system. */
  ca: string | null
  key: SigningKey
  device: string
  /** Names the control plane that it enrolled at: SHA-256 of the root key that it pinned. */
  audience: string
  version: string
}

type Say = (words: string) => void

type OnManifest = (manifest: Record<string, unknown>) => Promise<void>

/** A connection that held for so long was a good one: the next try begins without waiting long. */
const goodMs = 5_000
/** One that was welcome and broke at once is tried again sooner than one that never came about. */
const triesOnceWelcome = 3
const firstWaitMs = 500
const longestWaitMs = 30_000
/** A refused agent, or two under one name, wait longer: nothing changes soon. */
const refusedWaitMs = 300_000
/**
 * Time for work under way when the control plane sends us elsewhere: answers go over the old
 * connection.
 */
const leaveWithinMs = 10_000
/**
 * A control plane welcomes an agent in milliseconds. A slower peer is another program, or hangs
 * behind a proxy.
 */
const welcomeWithinMs = 30_000

/**
 * Keeps one connection to the control plane, which carries requests as HTTP would. Connects again
 * after each end, later and later, and never at others' moments. `say` hears each change in a
 * sentence.
 */
export function keepConnected(
  agent: Agent,
  terms: ConnectionTerms,
  on: { say: Say; manifest: OnManifest },
  welcomeMs = welcomeWithinMs,
): { isConnected(): boolean; stop(): void } {
  const run = randomUUID()
  let current: Attempt | null = null
  let timer: NodeJS.Timeout | undefined
  let tries = 0
  let said = ''
  let isStopped = false
  // Says the same trouble once, not at every try.
  const sayOnce = (words: string) => {
    if (words !== said) on.say(words)
    said = words
  }

  function connect(): void {
    if (isStopped) return
    const startedMs = performance.now()
    const attempt = attemptOnce(
      agent,
      { ...terms, run, welcomeMs },
      {
        welcome: async (manifest) => {
          sayOnce(`Connected to ${terms.api}`)
          if (manifest) await on.manifest(manifest)
        },
        manifest: on.manifest,
        move() {
          // The old connection answers what is under way; the next one is another process's.
          if (current === attempt) again(1_000, 0)
        },
        end(why, isRefused) {
          if (current !== attempt) return
          if (isStopped) return
          sayOnce(why)
          if (attempt.isWelcome())
            tries = performance.now() - startedMs > goodMs ? 0 : Math.min(tries, triesOnceWelcome)
          if (isRefused) again(refusedWaitMs, refusedWaitMs / 2)
          else again(Math.min(longestWaitMs, firstWaitMs * 2 ** tries), 0)
          tries = Math.min(tries + 1, 16)
        },
      },
    )
    current = attempt
  }

  /** Full jitter: agents that lost one server together do not come back together. */
  function again(mostMs: number, leastMs: number): void {
    clearTimeout(timer)
    current = null
    timer = setTimeout(connect, leastMs + Math.random() * (mostMs - leastMs))
  }

  connect()
  return {
    isConnected: () => current?.isWelcome() ?? false,
    stop() {
      isStopped = true
      clearTimeout(timer)
      current?.close()
    },
  }
}

/** Made once: the authorities of a machine are a hundred and more. */
let made: { ca: string | null; context: SecureContext } | null = null
function secureContextOf(ca: string | null): SecureContext {
  made = made?.ca === ca ? made : { ca, context: createSecureContext(authoritiesOf(ca)) }
  return made.context
}

type Attempt = { isWelcome(): boolean; close(): void }
type OnAttempt = {
  welcome(manifest: Record<string, unknown> | null): Promise<void>
  manifest: OnManifest
  move(): void
  end(why: string, isRefused: boolean): void
}

type AttemptTerms = ConnectionTerms & { run: string; welcomeMs: number }

function attemptOnce(agent: Agent, terms: AttemptTerms, on: OnAttempt): Attempt {
  const { api, ca, welcomeMs } = terms
  const url = new URL(connectionPath, api)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const socket = new WebSocket(url, connectionProtocol, {
    perMessageDeflate: false,
    maxPayload: maxAskFrameBytes,
    handshakeTimeout: 15_000,
    followRedirects: false,
    ...(url.protocol === 'wss:' && { secureContext: secureContextOf(ca) }),
  })
  let isWelcome = false
  let trouble: string | null = null
  let frames: ReturnType<typeof serveFrames> | null = null
  // One after the other: no request is read before the welcome's manifest.
  let before: Promise<unknown> = Promise.resolve()
  const giveUp = (why: string) => {
    trouble ??= why
    socket.terminate()
  }
  // One limit for all of it: a peer that sends a byte now and then, or only answers pings, would
  // hold the agent for ever.
  const deadline = setTimeout(
    () => giveUp(`${api} did not welcome this agent within ${welcomeMs / 1000} s: look whether the API runs there`),
    welcomeMs,
  )

  socket.on('unexpected-response', (_request, response) => {
    void whyNotUpgraded(response).then((why) => giveUp(`${api}: ${why}`))
  })
  socket.on('error', (error) => {
    trouble ??= isWelcome
      ? `The connection to ${api} broke: ${error.message}`
      : describeUnreached(api, error, ca !== null)
  })
  socket.on('open', () => keepAlive(socket))
  socket.on('message', (bytes: Buffer, isBinary: boolean) => {
    before = before
      .then(() => (isBinary ? frames?.take(bytes) : hear(bytes.toString('utf8'))))
      .catch((error: unknown) =>
        giveUp(`What ${api} said could not be taken: ${error instanceof Error ? error.message : String(error)}`),
      )
  })
  socket.on('close', (code, reason) => {
    clearTimeout(deadline)
    frames?.close()
    on.end(trouble ?? describeEnd(api, code, reason.toString('utf8')), isRefusal(code))
  })

  async function hear(text: string): Promise<void> {
    const value: unknown = JSON.parse(text)
    if (!isWelcome) {
      const challenge = connectionChallenge.safeParse(value)
      if (challenge.success) return socket.send(hello(terms, challenge.data))
    }
    const word = controlWord.safeParse(value)
    // A newer control plane may say more.
    if (!word.success) return
    if (word.data.kind === 'welcome') {
      clearTimeout(deadline)
      isWelcome = true
      frames = serveFrames(agent, socket)
      await on.welcome(word.data.manifest)
    } else if (word.data.kind === 'manifest') await on.manifest(word.data.manifest)
    else {
      on.move()
      frames?.leave(leaveWithinMs)
    }
  }

  return { isWelcome: () => isWelcome, close: () => socket.close(1000, 'the agent ends') }
}

/** Signs for the control plane that this agent enrolled at; another one that asks gets nothing. */
function hello(
  { device, key, audience, version, run, api }: AttemptTerms,
  challenge: { nonce: string; audience: string },
): string {
  if (challenge.audience !== audience)
    throw new Error(`${api} is another control plane than the one that this device enrolled at`)
  const { nonce } = challenge
  return JSON.stringify(
    signed({ kind: 'hello', purpose: connectionPurpose, device, nonce, audience, run, version }, key),
  )
}

async function whyNotUpgraded(response: NodeJS.ReadableStream & { statusCode?: number }): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response) {
      text += chunk
      if (text.length > 10_000) break
    }
  } catch {
    // An answer that breaks off has its status all the same.
  }
  const status = response.statusCode
  let detail: unknown = null
  try {
    detail = (JSON.parse(text) as { detail?: unknown }).detail
  } catch {}
  if (status === 426 && typeof detail === 'string') return detail
  if (status === 404)
    return 'it takes no connections of agents: it is older than agents that call out (upgrade it), or a proxy before it does not pass /mesh/connection on'
  if (status === 503 || status === 502) return `it takes no connection just now (${status})`
  return `it answered ${status}${typeof detail === 'string' ? `: ${detail.slice(0, 300)}` : ''}. A proxy has to let WebSocket pass`
}

const isRefusal = (code: number) => code === closeCodes.refused || code === closeCodes.replaced

function describeEnd(api: string, code: number, reason: string): string {
  if (code === closeCodes.refused)
    return `${api} refuses this device (${reason}): enrol it again with a new token, or stop this agent`
  if (code === closeCodes.replaced)
    return `Another agent connected with the key of this device (${reason}): stop one of the two. A copied host has to enrol under a name of its own`
  if (code === closeCodes.move) return `${api} sent this agent elsewhere`
  return `The connection to ${api} ended (${code}${reason ? `: ${reason}` : ''})`
}
