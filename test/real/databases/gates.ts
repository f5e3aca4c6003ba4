import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * Stands before a real server and holds what a client sends, piece by piece: `pg` sends what it
 * awaits an answer to as one piece.
 */

export type Gates = {
  port: number
  /** What comes before the next pieces go on, by their count since then. */
  hold(before: (piece: number) => Promise<void> | void): void
  /** Leads the next connections to another server. */
  leadTo(port: number): void
  close(): Promise<void>
}

export async function openGates(serverPort: number): Promise<Gates> {
  let target = serverPort
  let count = 0
  let before: (piece: number) => Promise<void> | void = () => undefined
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const socket of [client, upstream]) {
      open.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => open.delete(socket))
    }
    upstream.pipe(client)
    let turn = Promise.resolve()
    client.on('data', (piece) => {
      turn = turn.then(async () => {
        // A good-bye is awaited by nobody.
        if (piece[0] !== 0x58) await before(count++)
        upstream.write(piece)
      })
    })
    client.on('end', () => void turn.then(() => upstream.end()))
    client.on('close', () => void turn.then(() => upstream.destroy()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    hold(next) {
      count = 0
      before = next
    },
    leadTo(port) {
      target = port
    },
    async close() {
      for (const socket of open) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
