import { expect, test } from '@jest/globals'
import { eventsOf } from '../../../db/log/events.ts'
import { announced } from '../../support/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { enrolled, stopDevicesAtEnd, useMeshApi } from '../../support/mesh-api.ts'

const api = useMeshApi()
stopDevicesAtEnd()

const read = { capability: 'fs.read', args: { path: '/srv/app.conf' } }

test('a person reads a file on a node through its device', async () => {
  const device = await enrolled(api, 'node-osl-1')
  device.files.set('/srv/app.conf', 'port = 80')
  const answer = await api.post('/devices/node-osl-1/calls', { body: read, as: api.tokens.operator })
  expect([answer.status, answer.body]).toEqual([
    200,
    expect.objectContaining({
      on: { kind: 'node', id: 'node-osl-1' },
      device: 'node-osl-1',
      content: 'port = 80',
      approval_status: 'auto_approved',
      cmd_executed: null,
      audit_hash: device.head,
    }),
  ])
})

test('an agent reads what its run announced, and nothing else', async () => {
  const id = await claimedIncident(api.db)
  const key = await announced(api.db, id, 'fs_read', { on: 'node-osl-1', path: '/srv/app.conf' }, null, 'read')
  const asked = { body: read, key, as: api.tokens.agent }
  expect((await api.post('/devices/node-osl-1/calls', asked)).body).toMatchObject({ content: 'port = 80' })
  const other = { capability: 'fs.read', args: { path: '/srv/other' } }
  for (const [path, body] of [
    ['/devices/node-osl-1/calls', other],
    ['/devices/node-osl-2/calls', read],
    ['/devices/node-osl-1/calls', { ...read, rehearse: true }],
    ['/devices/node-osl-1/calls', { ...read, capability: 'fs.stat' }],
  ] as const) {
    const answer = await api.post(path, { body, key, as: api.tokens.agent })
    expect([path, answer.status, answer.body.code]).toEqual([path, 403, 'UNJUDGED'])
  }
})

test("a person's request to a device is in the audit log under their name", async () => {
  const rows = (await api.get('/audit?what=device.called')).body.items as unknown as {
    who: string
    detail: string
  }[]
  expect(rows).toMatchObject([{ who: 'operator', detail: 'Asked: Read /srv/app.conf, on node-osl-1' }])
})

test('a long read of a run is followed line by line, and ends with its run', async () => {
  const device = await enrolled(api, 'node-osl-2')
  Object.assign(device, { lines: Array.from({ length: 200 }, (_, index) => `entry ${index}`), lineEveryMs: 50 })
  const id = await claimedIncident(api.db)
  const key = await announced(api.db, id, 'docker_logs', { on: 'node-osl-2', container: 'web' }, null, 'read')
  const body = { capability: 'docker.container.logs', args: { container: 'web' } }
  const asking = api.post('/devices/node-osl-2/calls', { body, key, as: api.tokens.agent })
  await eventually('the first lines', async () =>
    (await eventsOf(api.db, id)).some((event) => event.kind === 'tool_output'),
  )
  await api.post(`/incidents/${id}/cancel`, { body: { reason: 'enough' } })
  expect((await asking).body.code).toBe('cancelled')
})
