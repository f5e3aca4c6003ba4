import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { askThrough, callingAgent, knownToCallOut, openDoor } from '../support/calls-out.ts'
import { eventually, temporaryDirectory } from '../support/directory.ts'
import { useMeshApi } from '../support/mesh-api.ts'

const api = useMeshApi()

test('an agent enrols by one line, calls out, and is asked over its connection', async () => {
  const files = temporaryDirectory()
  writeFileSync(join(files.path, 'app.conf'), 'port = 80\n')
  const door = await openDoor(api)
  askThrough(api, door)
  const roots = [{ path: files.path, writable: true }]
  const token = await knownToCallOut(api, 'node-osl-1', { terms: { capabilities: [], roots } })
  const agent = callingAgent()
  await agent.up(['--connect', door.url, '--token', token])
  await eventually('the connection', () => door.connections.held().includes('node-osl-1'))
  const read = { capability: 'fs.read', args: { path: join(files.path, 'app.conf') } }
  const answer = await api.post('/devices/node-osl-1/calls', { body: read, as: api.tokens.operator })
  expect([answer.status, answer.body.content]).toEqual([200, 'port = 80\n'])
  const { body: shown } = await api.get('/devices/node-osl-1')
  expect(shown.connection).toMatchObject({ isConnected: true, process: 'api-1', address: '127.0.0.1' })
  expect(shown.health).toMatchObject({ status: 'ready' })
  files.remove()
})
