import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { closeConnections } from '../../../clients/http.ts'
import { createProxmoxApi, upid } from '../../../clients/proxmox/api.ts'
import { selfSigned } from '../../support/local-server.ts'
import { token } from './scripted-proxmox.ts'

const own = selfSigned()
let asked = 0
let server: Server
let url: string

beforeAll(async () => {
  server = createServer(own, (_request, response) => {
    asked += 1
    response.end(JSON.stringify({ data: 'UPID:pve1:00000FA1:00015F91:6AFD1A01:qmigrate:101:nightshift@pve!core:' }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  await closeConnections()
  server.closeAllConnections()
  server.close()
})

test('a named authority of a cluster is trusted, and the token is sent only to its cluster', async () => {
  const ask = (ca?: string) => createProxmoxApi({ urls: [url], token, allow: 'loopback', ca }).get(['version'], upid)
  expect(await ask(own.cert)).toContain('UPID:pve1:')
  // Neither the system's authorities nor another cluster's vouch for it, also not over a connection
  // that is still open.
  for (const ca of [undefined, selfSigned().cert]) {
    await expect(ask(ca)).rejects.toMatchObject({ name: 'HttpError' })
  }
  expect(asked).toBe(1)
})
