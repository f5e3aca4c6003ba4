import { expect, test } from '@jest/globals'
import { sql } from 'kysely'
import { deviceById } from '../../../db/inventory/devices.ts'
import { verifyChanges, verifyKept } from '../../../db/verify/row-changes.ts'
import { type Manifest, manifest as manifestSchema } from '../../../domain/mesh.ts'
import { noteKeys } from '../../../effects/devices/executor.ts'
import { callDevice } from '../../../mesh/client.ts'
import { overHttp } from '../../../mesh/over-http.ts'
import { isSigned, issueRequest, publicHalf, readPublicKey } from '../../../mesh/sign.ts'
import { moveClock } from '../../support/database.ts'
import { enrol, enrolled, newKey, stopDevicesAtEnd, useMeshApi } from '../../support/mesh-api.ts'

const warnings: unknown[][] = []
const log = { level: 'warn', warn: (...said: unknown[]) => void warnings.push(said), error() {}, info() {}, debug() {} }
const api = useMeshApi({ log: log as never })
stopDevicesAtEnd()

const settings = {
  url: 'http://127.0.0.1:7474',
  mode: 'user',
  terms: { capabilities: [], roots: [{ path: '/srv', writable: true }] },
}
const look = { capability: 'fs.stat', args: { path: '/srv/app.conf' } }

test('only an admin adds a device, changes it, enrols it and revokes it', async () => {
  for (const role of ['viewer', 'operator', 'approver', 'agent', 'ingest'] as const) {
    const as = api.tokens[role]
    const answers = [
      await api.put('/devices/host-osl-1', { body: settings, as }),
      await api.post('/devices/host-osl-1/enrolment', { as }),
      await api.post('/devices/host-osl-1/revoke', { body: {}, as }),
    ]
    expect([role, ...answers.map(({ status }) => status)]).toEqual([role, 403, 403, 403])
  }
})

test('a device belongs to a resource of the inventory that has no other device', async () => {
  const lost = { ...settings, resource: { kind: 'host', id: 'nowhere' } }
  expect((await api.put('/devices/nowhere', { body: lost })).body.code).toBe('NO_RESOURCE')
  await enrolled(api, 'host-osl-1')
  const second = { ...settings, resource: { kind: 'host', id: 'host-osl-1' } }
  expect((await api.put('/devices/spare', { body: second })).body.code).toBe('RESOURCE_TAKEN')
  const borrowed = { ...settings, resource: { kind: 'host', id: 'host-osl-3' } }
  expect((await api.put('/devices/node-osl-2', { body: borrowed })).body.code).toBe('NAME_TAKEN')
})

test('an address over which others could read, or that is no address of a device, is refused', async () => {
  for (const url of [
    'http://203.0.113.9:7474',
    'http://169.254.169.254/latest',
    'http://anna:secret@10.0.0.1',
    'ftp://10.0.0.1',
    'http://device.example.com:7474',
  ]) {
    const { status } = await api.put('/devices/host-osl-3', { body: { ...settings, url } })
    expect([url, status]).toEqual([url, 422])
  }
})

test('an unknown tool in tools_allowed is a warning, and the other tools apply', async () => {
  const toolsAllowed = ['fs.read', 'exec', 'project.create']
  await enrolled(api, 'node-osl-1', { toolsAllowed })
  expect(warnings).toContainEqual([
    { device: 'node-osl-1', unknown: ['project.create'] },
    'device_mesh tools_allowed lists unknown tool',
  ])
  expect((await api.get('/devices/node-osl-1')).body.tools).toEqual(['exec', 'fs_read'])
  const answer = await api.post('/devices/node-osl-1/calls', { body: look })
  expect([answer.status, answer.body.code]).toEqual([424, 'capability_unavailable'])
})

test('each change is in the audit log, without any token', async () => {
  const rows = (await api.get('/audit?what=device')).body.items as unknown as { what: string; subject: string }[]
  const told = rows.filter((row) => row.subject === 'node-osl-1').map((row) => row.what)
  expect(told).toEqual(['device.enrolled', 'device.enrolment_minted', 'device.added'])
  expect(JSON.stringify(rows)).not.toContain('nst_')
})

test('an enrolment token works once', async () => {
  await api.put('/devices/host-osl-3', { body: settings })
  const { body } = await api.post('/devices/host-osl-3/enrolment')
  const [first, second] = await Promise.all([enrol(api, String(body.token)), enrol(api, String(body.token))])
  expect([first.status, second.status].sort()).toEqual([201, 403])
  const stored = JSON.stringify(await api.db.selectFrom('deviceEnrolment').selectAll().execute())
  expect(stored).not.toContain(String(body.token))
})

test('an enrolment returns the root key, and a manifest that it signed', async () => {
  const { body } = await api.post('/devices/host-osl-3/enrolment')
  const answer = (await enrol(api, String(body.token))).body
  expect(answer.root_public_key).toBe(publicHalf(api.mesh.keys.root))
  const key = readPublicKey(String(answer.root_public_key))
  const manifest = manifestSchema.parse(answer.manifest)
  expect(key && isSigned(answer.manifest as never, key)).toBe(true)
  expect(manifest).toMatchObject({ device: 'host-osl-3', mode: 'user', keys: [{ id: 'k-first', not_after: null }] })
})

test('a second token voids the first, and fifteen minutes void both', async () => {
  const first = (await api.post('/devices/host-osl-3/enrolment')).body.token
  const second = (await api.post('/devices/host-osl-3/enrolment')).body.token
  expect((await enrol(api, String(first))).status).toBe(403)
  await moveClock(api.owner, '16 minutes')
  expect((await enrol(api, String(second))).status).toBe(403)
  await moveClock(api.owner, '0 minutes')
})

test('a token that was sent to a wrong operation is in the audit log without its text', async () => {
  const wrong = `nst_${'x'.repeat(43)}`
  expect((await enrol(api, wrong)).body.code).toBe('ENROLMENT_REFUSED')
  expect((await enrol(api, wrong, 'manifests')).status).toBe(403)
  const rows = (await api.get('/audit?what=security')).body.items as unknown as { what: string; detail: string }[]
  expect(rows.map((row) => row.what)).toContain('security.enrolment_refused')
  expect(JSON.stringify(rows)).not.toContain(wrong)
})

test('a token of the API cannot enrol a device, and an enrolment token cannot sign a person in', async () => {
  expect((await enrol(api, api.tokens.admin)).status).toBe(403)
  const { body } = await api.post('/devices/host-osl-3/enrolment')
  expect((await api.get('/devices', { as: String(body.token) })).status).toBe(401)
})

test('after a rotation the device refuses a request that was signed with the old key', async () => {
  const device = await enrolled(api, 'node-osl-2')
  const { body: minted } = await api.post('/devices/node-osl-2/enrolment')
  const refresh = (await enrol(api, String(minted.token))).body.refresh_token
  const fetched = async () => {
    device.manifest = (await enrol(api, String(refresh), 'manifests')).body.manifest as Manifest
    return device.manifest?.keys.map(({ id, not_after }) => [id, not_after === null])
  }
  const old = api.mesh.keys.signing
  const next = newKey('k-second')

  // Announced: devices know the next key before anything is signed with it.
  api.mesh.keys.next = next
  await noteKeys(api, api.mesh)
  expect(await fetched()).toEqual(
    expect.arrayContaining([
      ['k-first', true],
      ['k-second', true],
    ]),
  )
  expect((await api.post('/devices/node-osl-2/calls', { body: look })).body.code).toBe('not_found')

  // Turned.
  api.mesh.keys.signing = next
  api.mesh.keys.next = null
  await noteKeys(api, api.mesh)
  expect((await api.post('/devices/node-osl-2/calls', { body: look })).body.code).toBe('not_found')
  expect(await fetched()).toEqual(
    expect.arrayContaining([
      ['k-first', false],
      ['k-second', true],
    ]),
  )
  expect((await api.post('/devices/node-osl-2/calls', { body: look })).body.code).toBe('not_found')
  const stale = issueRequest(
    {
      requestId: `req_${'a'.repeat(24)}`,
      device: 'node-osl-2',
      capability: 'fs.stat',
      args: look.args,
      idempotencyKey: 'by the old key',
      deadlineMs: 5_000,
      grant: null,
    },
    old,
  )
  const answer = await callDevice(overHttp({ id: 'node-osl-2', url: device.url }), stale)
  expect(answer.error?.code).toBe('unknown_key')
})

test('a key that was announced as the next key and never arrived is not valid for any device', async () => {
  api.mesh.keys.next = newKey('k-dropped')
  await noteKeys(api, api.mesh)
  api.mesh.keys.next = null
  await noteKeys(api, api.mesh)
  const known = await api.db.selectFrom('meshKey').select('id').where('notAfter', 'is', null).execute()
  expect(known).toEqual([{ id: 'k-second' }])
})

test('a device with an expired manifest is not asked', async () => {
  const row = await deviceById(api.db, 'node-osl-2')
  const expired = { ...row?.manifest, expires_at: '2026-01-01T00:00:00.000Z' }
  await sql`update device set manifest = ${JSON.stringify(expired)}::jsonb where id = 'node-osl-2'`.execute(api.owner)
  const answer = await api.post('/devices/node-osl-2/calls', { body: look })
  expect([answer.status, answer.body.code]).toEqual([424, 'manifest_invalid'])
})

test('a device that loses its sandbox is reported with the reason and the remedy, and so is its recovery', async () => {
  const device = await enrolled(api, 'node-osl-3')
  const look = async () => {
    await api.post('/devices/node-osl-3/health')
    const { parts } = (await api.get('/status')).body as unknown as { parts: { name: string; detail: string }[] }
    return parts.find(({ name }) => name === 'devices')
  }
  expect((await look())?.detail).not.toContain('node-osl-3')
  device.sandboxLack = 'unshare: /mnt/x (nfs4) cannot be made read-only'
  expect(await look()).toMatchObject({
    status: 'failed',
    detail: expect.stringMatching(/node-osl-3 \(unshare: \/mnt\/x .* read-only\)/),
    remedy: expect.stringContaining('install bubblewrap'),
  })
  await look()
  device.sandboxLack = null
  expect((await look())?.detail).not.toContain('node-osl-3')
  const rows = (await api.get('/audit?what=device')).body.items as unknown as { what: string; subject: string }[]
  const told = rows.filter(({ subject }) => subject === 'node-osl-3').map(({ what }) => what)
  expect(told.filter((what) => what.includes('sandbox'))).toEqual(['device.sandbox_back', 'device.sandbox_lost'])
})

test('a revoked device is not asked, fetches nothing, and cannot return under its name', async () => {
  const device = await enrolled(api, 'vm-1')
  const { body: minted } = await api.post('/devices/vm-1/enrolment')
  const refresh = (await enrol(api, String(minted.token))).body.refresh_token
  const open = (await api.post('/devices/vm-1/enrolment')).body.token
  expect((await api.post('/devices/vm-1/revoke', { body: { reason: 'stolen' } })).body.revoked).toBe(true)
  const [told] = (await api.get('/audit?what=device')).body.items as unknown as object[]
  expect(told).toMatchObject({ what: 'device.revoked', who: 'admin', subject: 'vm-1' })
  const heard = device.heard.length
  const answer = await api.post('/devices/vm-1/calls', { body: look })
  expect([answer.status, answer.body.code]).toEqual([424, 'capability_unavailable'])
  expect(device.heard.length).toBe(heard)
  expect((await enrol(api, String(open))).status).toBe(403)
  expect((await enrol(api, String(refresh), 'manifests')).status).toBe(403)
  expect((await api.put('/devices/vm-1', { body: settings })).body.code).toBe('REVOKED')
  expect((await api.post('/devices/vm-1/enrolment')).body.code).toBe('REVOKED')
})

test('a device that is switched off is not asked', async () => {
  const { url } = (await api.get('/devices/node-osl-1')).body as never as { url: string }
  await api.put('/devices/node-osl-1', { body: { ...settings, url, enabled: false } })
  const answer = await api.post('/devices/node-osl-1/calls', { body: look })
  expect([answer.status, answer.body.code]).toEqual([424, 'device_disabled'])
})

test('verify finds no unexplained change after actions through the product', async () => {
  const found = [...(await verifyChanges(api.db, 0)).differences, ...(await verifyKept(api.db)).differences]
  // Fixtures of tests claim incidents, and change rows as the owner.
  expect(found.filter(({ subject, what }) => !subject.startsWith('inc_') && !what.includes(' by postgres '))).toEqual(
    [],
  )
})
