import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { enrolled, stopDevicesAtEnd, useMeshApi } from '../support/mesh-api.ts'
import type { ScriptedDevice } from '../support/scripted-device.ts'

const api = useMeshApi()
stopDevicesAtEnd()

const read = { capability: 'fs.read', args: { path: '/srv/app.conf' } }
const ask = (body: object = read) => api.post('/devices/node-osl-1/calls', { body, as: api.tokens.operator })
let device: ScriptedDevice

beforeAll(async () => {
  device = await enrolled(api, 'node-osl-1')
  device.files.set('/srv/app.conf', 'port = 80')
})

test.each(['other_request', 'other_device', 'junk'] as const)(
  'an invalid answer (%s) is not accepted',
  async (mood) => {
    device.moods = [mood]
    const answer = await ask()
    expect([answer.status, answer.body.code]).toEqual([424, 'device_unreachable'])
    expect(JSON.stringify(answer.body)).not.toContain('teapot')
  },
)

test('a read whose answer was lost is asked again', async () => {
  device.moods = ['drop_after', 'drop_before']
  expect((await ask()).status).toBe(200)
})

test('a busy device is asked again a moment later', async () => {
  device.moods = ['busy']
  expect((await ask()).status).toBe(200)
})

test('a device that never answers is abandoned, with this reason', async () => {
  const within = (timeoutSeconds: number) => sql`update device set timeout_seconds = ${timeoutSeconds}`.execute(api.db)
  await within(2)
  device.moods = ['hang']
  const answer = await ask()
  await within(60)
  expect([answer.status, answer.body.code]).toEqual([424, 'device_unreachable'])
  expect(answer.body.detail).toContain('took longer')
})

test('a device that is down is reported in words, and its health shows it', async () => {
  await device.stop()
  expect((await ask()).body.detail).toMatch(/device_mesh: fs\.read: device_unreachable: node-osl-1 gave no answer/)
  expect((await api.post('/devices/node-osl-1/health')).body.healthProblem).toContain('no connection')
  await device.resume()
  expect((await api.post('/devices/node-osl-1/health')).body).toMatchObject({ healthProblem: null })
})

test('a capability that the device lacks is refused before the device is asked', async () => {
  const heard = device.heard.length
  const answer = await ask({ capability: 'docker.container.list', args: {} })
  expect([answer.status, answer.body.code]).toEqual([424, 'capability_unavailable'])
  expect(answer.body.detail).toContain('no engine socket')
  expect(device.heard.length).toBe(heard)
})

test('a secret among the arguments is sent nowhere', async () => {
  const heard = device.heard.length
  const argv = ['curl', '-H', 'Authorization: Bearer ghp_0123456789abcdefghijklmnopqrstuvwxyz']
  const answer = await ask({ capability: 'shell.exec', args: { argv } })
  expect([answer.status, answer.body.code]).toEqual([422, 'SECRET_IN_ARGUMENTS'])
  expect(device.heard.length).toBe(heard)
})

test('a secret in the answer of a device is not passed on', async () => {
  device.files.set('/srv/secret.env', 'DB_PASSWORD=hunter2hunter2')
  const answer = await ask({ capability: 'fs.read', args: { path: '/srv/secret.env' } })
  expect(answer.body.content).toContain('[redacted')
  expect(JSON.stringify(answer.body)).not.toContain('hunter2')
})

test('an address in the environment overrides the one in the row', async () => {
  const asked: string[] = []
  const elsewhere = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.end('{}')
  })
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
  const body = {
    url: device.url,
    urlEnv: 'NODE_OSL_1_DEVICE_MESH_URL',
    mode: 'all',
    terms: { capabilities: [], roots: [] },
  }
  await api.put('/devices/node-osl-1', { body })
  api.variables.NODE_OSL_1_DEVICE_MESH_URL = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`
  await ask()
  delete api.variables.NODE_OSL_1_DEVICE_MESH_URL
  expect(asked).toContain('/capability')
  elsewhere.close()
  const wrong = { ...body, urlEnv: 'AGENT_API_KEY' }
  expect((await api.put('/devices/node-osl-1', { body: wrong })).status).toBe(422)
})

test('calls are counted by capability and outcome', async () => {
  const text = await (await api.api.app.request('/metrics')).text()
  expect(text).toMatch(/nightshift_device_calls_total\{capability="fs\.read",outcome="ok"\} [1-9]/)
  expect(text).toMatch(/nightshift_device_calls_total\{capability="fs\.read",outcome="not_sent"\} [1-9]/)
  expect(text).toMatch(/nightshift_device_call_duration_seconds_count\{capability="fs\.read",outcome="ok"\} [1-9]/)
})

test('an API without keys has no mesh, and says so', async () => {
  const { mesh } = api.api.deps
  api.api.deps.mesh = null
  expect((await ask()).body.code).toBe('NO_MESH')
  api.api.deps.mesh = mesh
})
