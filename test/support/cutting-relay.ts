import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A relay before servers of one kind that can end its connections in the middle of what passes. */
export type CuttingRelay = {
  url: string
  /** Ends all connections now. */
  cut(): void
  /**
   * Ends the connection that passes these bytes next, in either direction, in the middle of them.
   */
  cutWithin(bytes: number): void
  stop(): Promise<void>
}

/** `target`: the port that a new connection goes to; null: none is up, and it is refused. */
export async function startCuttingRelay(target: () => number | null): Promise<CuttingRelay> {
  const open = new Set<Socket>()
  let left = Number.POSITIVE_INFINITY
  const server = createServer((near) => {
    const port = target()
    if (port === null) return void near.destroy()
    const far = connect(port, '127.0.0.1')
    const end = () => {
      for (const socket of [near, far]) {
        socket.destroy()
        open.delete(socket)
      }
    }
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('error', end).on('close', end)
      from.on('data', (bytes: Buffer) => {
        if (bytes.length < left) {
          left -= bytes.length
          if (!to.write(bytes)) from.pause()
          return
        }
        const part = bytes.subarray(0, left)
        left = Number.POSITIVE_INFINITY
        // Forwarded bytes arrive; the rest of the frame never does.
        to.write(part, end)
      })
      to.on('drain', () => from.resume())
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const cut = () => {
    for (const socket of open) socket.destroy()
    open.clear()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    cutWithin(bytes) {
      left = bytes
    },
    async stop() {
      cut()
      await new Promise((done) => server.close(done))
    },
  }
}
