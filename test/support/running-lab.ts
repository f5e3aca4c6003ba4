import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { effectAnswer, type Inventory, inventory } from '../../domain/platform.ts'
import { type LabClient, labClient } from '../../lab/client.ts'
import type { WebhookAlert, WebhookBody } from '../../lab/conditions.ts'
import { compileCache, temporaryDirectory } from './directory.ts'

export const platformToken = 'platform-token-of-a-test'
export const controlToken = 'control-token-of-a-test'

/** A lab's controller in a process of its own, as it runs for people. */
export type RunningLab = {
  url: string
  dir: string
  process: ChildProcess
  control: LabClient
  /** Bodies that were posted as alerts, in order. */
  alerts: WebhookBody[]
  /** The alerts that have begun and not ended by what was posted so far. */
  firing(): WebhookAlert[]
  /** How many bodies the receiver has not taken. */
  refused(): number
  /** What the receiver answers from now on. */
  answerAlertsWith(status: number): void
  inventory(): Promise<Inventory>
  write(
    key: string,
    path: string,
    body?: object,
  ): Promise<{ status: number; answer: ReturnType<typeof effectAnswer.parse> }>
  /** SIGTERM, and the receiver closed. */
  stop(): Promise<void>
}

export async function runLab(
  dir: string,
  options: { webShards?: number; paceSeconds?: number } = {},
): Promise<RunningLab> {
  const alerts: WebhookBody[] = []
  let status = 202
  let refused = 0
  const receiver = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (status >= 300) refused += 1
    if (status < 300 && request.headers.authorization === 'Bearer alert-token')
      alerts.push(JSON.parse(text) as WebhookBody)
    response.writeHead(status).end()
  })
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../lab/main.ts')], {
    env: {
      PATH: process.env.PATH,
      ...(process.env.KUBE_BIN !== undefined && { KUBE_BIN: process.env.KUBE_BIN }),
      NODE_COMPILE_CACHE: compileCache,
      LAB_DIR: dir,
      LAB_PLATFORM_TOKEN: platformToken,
      LAB_CONTROL_TOKEN: controlToken,
      ALERT_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      ALERT_TOKEN: 'alert-token',
      LAB_WEB_SHARDS: String(options.webShards ?? 1),
      LAB_PROBE_INTERVAL_MS: '100',
      // A replica that gets no time falls behind as one that was stopped does: a second of that is
      // no fault on a busy machine.
      LAB_LAG_SECONDS: '4',
      LAB_PACE_SECONDS: String(options.paceSeconds ?? 20),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let url: string
  try {
    url = `http://127.0.0.1:${await readyPort(child)}`
  } catch (error) {
    receiver.close()
    throw error
  }
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${platformToken}`, ...init.headers } })
  return {
    url,
    dir,
    process: child,
    control: labClient(url, controlToken),
    alerts,
    firing() {
      const last = new Map(alerts.flatMap((body) => body.alerts).map((alert) => [alert.fingerprint, alert]))
      return [...last.values()].filter((alert) => alert.status === 'firing')
    },
    refused: () => refused,
    answerAlertsWith(next) {
      status = next
    },
    inventory: async () => inventory.parse(await (await ask('/v1/inventory')).json()),
    async write(key, path, body = {}) {
      const response = await ask(path, {
        method: 'POST',
        headers: { 'idempotency-key': key },
        body: JSON.stringify(body),
      })
      return { status: response.status, answer: effectAnswer.parse(await response.json()) }
    },
    async stop() {
      receiver.close()
      receiver.closeAllConnections()
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** A directory for a lab, removed after the lab is gone. */
export const labDirectory = temporaryDirectory

async function readyPort(child: ChildProcess): Promise<number> {
  let trouble = ''
  child.stderr!.on('data', (chunk) => {
    trouble += chunk
  })
  for await (const line of createInterface({ input: child.stdout! })) {
    const { port } = JSON.parse(line) as { port?: number }
    if (port) {
      child.stdout!.resume()
      return port
    }
  }
  throw new Error(`the lab did not start: ${trouble}`)
}
