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

/** The data of an agent that connects to the API: its enrolment and its key. */
type ConnectionTerms = {
  api: string
  /** PEM of the trusted authority. Null if the system's authorities are trusted. */
  ca: string | null
  key: SigningKey
  device: string
  /** Identifies the control plane: SHA-256 of the root key that the agent pinned. */
  audience: string
  version: string
}

type Say = (words: string) => void

type OnManifest = (manifest: Record<string, unknown>) => Promise<void>

/**
 * Milliseconds after which a connection counts as good. If a good connection ends, the next attempt
 * begins soon.
 */
const goodMs = 5_000
/**
 * The most attempts that count for the next wait after a connection was accepted and broke at once.
 */
const triesOnceWelcome = 3
const firstWaitMs = 500
const longestWaitMs = 30_000
/**
 * Milliseconds of waiting after a refusal, or if two agents have one name, because neither changes
 * soon.
 */
const refusedWaitMs = 300_000
/**
 * Milliseconds for running work when the control plane sends this agent to another process.
 * Responses to running work use the old connection.
 */
const leaveWithinMs = 10_000
/**
 * Milliseconds for the control plane's welcome, which takes only a few. A slower peer is another
 * program, or hangs behind a proxy.
 */
const welcomeWithinMs = 30_000

/**
 * Keeps one connection to the control plane, which carries requests like HTTP. Connects again
 * whenever the connection ends, after random waits that grow. `say` gets each change in a sentence.
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
  // Reports a problem once, not again at every attempt.
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
          // Leaves running work on the old connection. The new connection goes to another process.
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

  /**
   * Connects again after a random wait (full jitter), so that agents that lost one server together
   * do not return together.
   */
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

/** The TLS context. It is made once, because a machine has a hundred authorities or more. */
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
  const socket = openSocket(api, ca)
  let isWelcome = false
  let trouble: string | null = null
  let frames: ReturnType<typeof serveFrames> | null = null
  // Handles messages one after the other, so that no request is read before the manifest of the
  // welcome.
  let before: Promise<unknown> = Promise.resolve()
  const giveUp = (why: string) => {
    trouble ??= why
    socket.terminate()
  }
  // Limits the time of the complete welcome, because otherwise a peer that sends a byte now and
  // then, or only responds to pings, would block the agent for ever.
  const deadline = setTimeout(
    () => giveUp(`${api} did not accept this agent within ${welcomeMs / 1000} s: check that the API runs there`),
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
        giveUp(`A message of ${api} was not understood: ${error instanceof Error ? error.message : String(error)}`),
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
    // Ignores unknown messages, because a newer control plane may send more kinds.
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

  return { isWelcome: () => isWelcome, close: () => socket.close(1000, 'the agent is stopping') }
}

function openSocket(api: AttemptTerms['api'], ca: AttemptTerms['ca']): WebSocket {
  const url = new URL(connectionPath, api)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  return new WebSocket(url, connectionProtocol, {
    perMessageDeflate: false,
    maxPayload: maxAskFrameBytes,
    handshakeTimeout: 15_000,
    followRedirects: false,
    ...(url.protocol === 'wss:' && { secureContext: secureContextOf(ca) }),
  })
}

/**
 * Signs the challenge of the control plane at which this agent enrolled. Throws for any other
 * control plane.
 */
function hello(
  { device, key, audience, version, run, api }: AttemptTerms,
  challenge: { nonce: string; audience: string },
): string {
  if (challenge.audience !== audience) throw new Error(`${api} is not the control plane of this device's enrolment`)
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
    // Uses only the status of a response that breaks off.
  }
  const status = response.statusCode
  let detail: unknown = null
  try {
    detail = (JSON.parse(text) as { detail?: unknown }).detail
  } catch {}
  if (status === 426 && typeof detail === 'string') return detail
  if (status === 404)
    return 'the control plane accepts no connections of agents: it is too old (upgrade it), or a proxy in front of it does not forward /mesh/connection'
  if (status === 503 || status === 502) return `the control plane accepts no connection now (${status})`
  return `the control plane answered ${status}${typeof detail === 'string' ? `: ${detail.slice(0, 300)}` : ''}. A proxy must let WebSocket pass`
}

const isRefusal = (code: number) => code === closeCodes.refused || code === closeCodes.replaced

function describeEnd(api: string, code: number, reason: string): string {
  if (code === closeCodes.refused)
    return `${api} refuses this device (${reason}): enrol this host again with a new token, or stop this agent`
  if (code === closeCodes.replaced)
    return `Another agent connected with the key of this device (${reason}): stop one of the two. A copied host must enrol under its own name`
  if (code === closeCodes.move) return `${api} redirected this agent`
  return `The connection to ${api} ended (${code}${reason ? `: ${reason}` : ''})`
}
