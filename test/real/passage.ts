import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { request } from 'node:http'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { relayTo } from './relay.ts'

type End = { socket: string; host: string; port: number }

/** What `passage-inside.ts` opens in the other network. */
export type Ends = {
  /** From a socket of the file system to an address in there. */
  into?: End[]
  /** From an address in there to a socket of the file system. */
  out?: End[]
  /** A name server on this address, for these names alone. */
  names?: { host: string; table: Record<string, string> }
}

export type Passage = { stop(): Promise<void> }

/** Opens ends in the network of a process. Root alone may enter it. */
export async function openPassage(pid: number, ends: Ends): Promise<Passage> {
  const program = join(import.meta.dirname, 'passage-inside.ts')
  const words = ['nsenter', '--target', String(pid), '--net', process.execPath, program, JSON.stringify(ends)]
  const child: ChildProcess = spawn('setpriv', ['--pdeathsig', 'KILL', ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const [line] = await Promise.race([once(child.stdout!, 'data'), ended])
  if (String(line) !== 'open\n') throw new Error(`the passage into the network of ${pid} ended`)
  return {
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** A socket of the file system that leads to a server on this machine's loopback. */
export async function socketTo(port: number, path: string): Promise<Server> {
  const server = relayTo({ host: '127.0.0.1', port })
  server.listen(path)
  await once(server, 'listening')
  return server
}

/**
 * Asks an HTTP server behind such a socket, with a connection for each question. A status of 0:
 * nobody answered.
 */
export async function askBehind(
  socketPath: string,
  path: string,
  { token, body }: { token?: string; body?: unknown } = {},
): Promise<{ status: number; body: string }> {
  return await new Promise((resolve) => {
    const headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const method = body === undefined ? 'GET' : 'POST'
    const asked = request({ socketPath, path, method, headers, agent: false, timeout: 20_000 }, (answer) => {
      text(answer).then(
        (said) => resolve({ status: answer.statusCode ?? 0, body: said }),
        (error) => resolve({ status: 0, body: String(error) }),
      )
    })
    asked.on('timeout', () => asked.destroy(new Error('no answer in 20 s')))
    asked.on('error', (error) => resolve({ status: 0, body: error.message }))
    asked.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
