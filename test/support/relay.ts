import { readdirSync, readFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Relay = {
  url: string
  /** Holds the next answer whose request matches, after the receiver has done its work; resolves when one is held. */
  holdNext(matches: (method: string, path: string) => boolean): Promise<void>
  /** Requests passed on, as `METHOD path`. */
  passed: string[]
  stop(): Promise<void>
}

/** A relay before an HTTP server, so that a caller can be killed between what happened and what it hears of it. */
export async function startRelay(target: string): Promise<Relay> {
  const passed: string[] = []
  let hold: { matches: (method: string, path: string) => boolean; held: () => void } | null = null
  const server = createServer((request, response) => {
    const method = request.method ?? 'GET'
    const path = request.url ?? '/'
    passed.push(`${method} ${path}`)
    const upstream = send(new URL(path, target), { method, headers: request.headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk) => chunks.push(chunk))
      answer.on('end', () => {
        if (hold?.matches(method, path)) {
          hold.held()
          hold = null
          return
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        response.end(Buffer.concat(chunks))
      })
    })
    upstream.on('error', () => response.destroy())
    request.pipe(upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    passed,
    holdNext: (matches) =>
      new Promise<void>((held) => {
        hold = { matches, held }
      }),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Stops a process and all below it without ending them, as a machine that hangs does. Answers how to let them go on. */
export function freeze(pid: number): () => void {
  const frozen: number[] = []
  // A parent first: it starts no more children while they are looked for.
  const stop = (each: number) => {
    process.kill(each, 'SIGSTOP')
    frozen.push(each)
    for (const child of childrenOf(each)) stop(child)
  }
  stop(pid)
  return () => {
    for (const each of frozen.reverse()) process.kill(each, 'SIGCONT')
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && parentOf(pid) === parent)
}

function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null
  }
}
