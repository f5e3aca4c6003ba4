import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A core API that answers at once: for measuring what Nightshift itself costs. `answer` is the body of every GET. */
export async function scriptedCore(answer: (path: string) => unknown): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((request, response) => {
    request.resume()
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer(request.url ?? '')))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
