import { connect, createServer } from 'node:net'

const givenOut = new Set<number>()

/** Below what systems hand out by themselves (Linux: 32768 on): there any connection that somebody opens may take a port. */
const lowest = 10_240
const highest = 32_000

/**
 * A port of 127.0.0.1 on which nobody listens and which this process has not been given before: the first from `from` on,
 * or any when there is no `from`. Between the answer and its use somebody else may take it; callers that can, try again.
 */
export async function freePort(from?: number): Promise<number> {
  if (from === undefined) {
    for (;;) {
      const port = lowest + Math.floor(Math.random() * (highest - lowest))
      if (!givenOut.has(port) && (await listenOnce(port)) !== undefined) return give(port)
    }
  }
  for (let port = from; port < Math.min(from + 200, 65_536); port++) {
    if (!givenOut.has(port) && (await listenOnce(port)) !== undefined) return give(port)
  }
  throw new Error(`Ports ${from} to ${from + 199} of 127.0.0.1 are all in use. Free one, or choose another range.`)
}

/** True when nobody listens on this port of 127.0.0.1 or of all addresses. */
export async function isFree(port: number): Promise<boolean> {
  return (await listenOnce(port)) !== undefined
}

/** True when somebody takes connections on this port of 127.0.0.1. Unlike `isFree` it never holds the port itself. */
export function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('error', () => resolve(false))
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
  })
}

/** Lets `freePort` answer with this port again. */
export function giveBack(port: number): void {
  givenOut.delete(port)
}

function give(port: number): number {
  givenOut.add(port)
  return port
}

async function listenOnce(port: number): Promise<number | undefined> {
  const onLoopback = await listen(port, '127.0.0.1')
  if (onLoopback === undefined || port === 0) return onLoopback
  // A server on all addresses does not stop a second one on 127.0.0.1 everywhere, yet it would be shadowed by it.
  return listen(port, '0.0.0.0')
}

function listen(port: number, host: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(undefined))
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : undefined))
    })
  })
}
