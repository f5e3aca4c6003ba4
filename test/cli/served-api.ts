import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { serve } from '@hono/node-server'
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import type { Role } from '../../domain/operator.ts'
import { type TestApi, useApi } from '../api/api.ts'
import { eventually } from '../support/eventually.ts'
import { tokenFile } from './run-cli.ts'

type ServedApi = TestApi & {
  /** Where the API listens; `url` is its database. */
  apiUrl: string
  /** What a command is told about where to ask, and as whom. */
  as(role: Role): Record<string, string>
  /** Requests as `METHOD path`, oldest first, with the id a stream was resumed from. */
  requests: { asked: string; lastEventId: string | undefined }[]
  /** How many streams are open. */
  listeners(): number
  /** Every connection breaks, as behind a proxy that restarts. */
  dropConnections(): void
}

/** The API itself, listening, over a database of this test file. */
export function useServedApi(): ServedApi {
  const api = useApi() as ServedApi
  const sockets = new Set<Socket>()
  let open = 0
  let server: Server
  api.requests = []
  api.listeners = () => open
  api.dropConnections = () => {
    for (const socket of sockets) socket.destroy()
  }
  api.as = (role) => ({ NIGHTSHIFT_URL: api.apiUrl, NIGHTSHIFT_TOKEN_FILE: tokenFile(api.tokens[role]) })
  beforeAll(async () => {
    server = serve({ fetch: api.api.app.fetch, port: 0, hostname: '127.0.0.1' }) as Server
    server.on('connection', (socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
    })
    server.on('request', ({ method, url, headers }, response) => {
      api.requests.push({ asked: `${method} ${url}`, lastEventId: headers['last-event-id'] as string | undefined })
      if (!url?.startsWith('/api/v1/stream')) return
      open += 1
      response.once('close', () => {
        open -= 1
      })
    })
    if (!server.listening) await once(server, 'listening')
    api.apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    // A stream that is left open would still ask the database after it is gone.
    api.dropConnections()
    await eventually('the streams to end', () => open === 0)
  })
  afterAll(() => void server.close())
  return api
}
