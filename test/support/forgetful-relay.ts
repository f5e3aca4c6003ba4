import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/**
 * A relay before a TCP server that can forget its connections, as a firewall or a failover does:
 * nobody is told, and no packet passes.
 */
export type ForgetfulRelay = { port: number; forget(): void; stop(): Promise<void> }

export async function startForgetfulRelay(port: number): Promise<ForgetfulRelay> {
  const pairs = new Set<[Socket, Socket]>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    near.pipe(far)
    far.pipe(near)
    for (const socket of pair) socket.on('error', () => {}).on('close', () => end(pair))
  })
  const end = (pair: [Socket, Socket]) => {
    for (const socket of pair) socket.destroy()
    pairs.delete(pair)
  }
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    port: (server.address() as AddressInfo).port,
    forget() {
      for (const [near, far] of pairs) {
        near.unpipe(far).removeAllListeners('close').resume()
        far.unpipe(near).removeAllListeners('close').resume()
      }
    },
    async stop() {
      for (const pair of pairs) end(pair)
      await new Promise((done) => server.close(done))
    },
  }
}
