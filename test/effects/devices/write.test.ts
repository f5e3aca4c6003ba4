import { expect, test } from '@jest/globals'
import { eventsOf } from '../../../db/log/events.ts'
import { systemScope } from '../../../db/scope.ts'
import { callsOf } from '../../../db/writes/device-calls.ts'
import { effectByKey } from '../../../db/writes/effects.ts'
import { announced, asked } from '../../support/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually } from '../../support/directory.ts'
import { enrolled, stopDevicesAtEnd, usedApproval, useMeshApi } from '../../support/mesh-api.ts'
import type { ScriptedDevice } from '../../support/scripted-device.ts'

const api = useMeshApi()
stopDevicesAtEnd()

const on = 'node-osl-1'
const path = `/devices/${on}/calls`
let device: ScriptedDevice
async function node(): Promise<ScriptedDevice> {
  device ??= await enrolled(api, on)
  return device
}

/** An action that a person approved and whose approval its run used up. */
async function approved(tool: string, args: Record<string, unknown>) {
  const incidentId = await claimedIncident(api.db)
  const identity = { ...args, on }
  const approvalId = await usedApproval(api, incidentId, tool, identity)
  const key = await announced(api.db, incidentId, tool, identity, approvalId)
  return { incidentId, approvalId, key, as: api.tokens.agent }
}

const write = (content: string) => ({ capability: 'fs.write', args: { path: '/srv/app.conf', content } })

test('a write without an approval is not sent, however it is announced', async () => {
  await node()
  const id = await claimedIncident(api.db)
  const args = write('forged').args
  const pending = await asked(api.db, id, { tool: 'fs_write', identity: { ...args, on } })
  for (const approvalId of [null, pending, 'apr_0000000000000000000000000']) {
    const key = await announced(api.db, id, 'fs_write', { ...args, on }, approvalId)
    const answer = await api.post(path, { body: write('forged'), key, as: api.tokens.agent })
    expect([approvalId, answer.status, answer.body.code]).toEqual([approvalId, 403, 'UNJUDGED'])
  }
  expect(device.heard).toEqual([])
})

test('an approved write is done, under a grant that names the approval', async () => {
  await node()
  const { approvalId, key, as, incidentId } = await approved('fs_write', write('port = 81').args)
  const answer = await api.post(path, { body: write('port = 81'), key, as })
  expect([answer.status, answer.body]).toEqual([
    200,
    expect.objectContaining({ key, device: on, approval_status: 'granted', audit_hash: device.head }),
  ])
  expect(device.files.get('/srv/app.conf')).toBe('port = 81')
  expect(device.done.at(-1)).toMatchObject({ key, granted: approvalId })
  const [call] = await callsOf(systemScope(api.db), on, { limit: 1 })
  expect(call).toMatchObject({ key, incidentId, authority: approvalId, ok: true, auditHash: device.head })
})

test('the approval of one write allows no other', async () => {
  await node()
  const { key, as } = await approved('fs_write', write('this').args)
  const before = device.heard.length
  expect((await api.post(path, { body: write('that'), key, as })).body.code).toBe('UNJUDGED')
  expect(device.heard.length).toBe(before)
})

test('a repeated write gets the answer again and is done once, under the existing grant', async () => {
  await node()
  const { key, as } = await approved('fs_write', write('once').args)
  const first = await api.post(path, { body: write('once'), key, as })
  const again = await api.post(path, { body: write('once'), key, as })
  expect(again.body).toEqual(first.body)
  expect(device.done.filter((each) => each.key === key)).toHaveLength(1)
  const grants = device.heard.filter((each) => each.idempotency_key === key).map((each) => each.grant?.id)
  expect(new Set(grants).size).toBe(1)
})

test('a lost answer is looked up at the device, and nothing is done twice', async () => {
  await node()
  device.moods = ['drop_after', 'drop_before', 'drop_before']
  const { key, as } = await approved('fs_write', write('lost').args)
  const answer = await api.post(path, { body: write('lost'), key, as })
  expect([answer.status, answer.body.approval_status]).toEqual([200, 'granted'])
  expect(device.done.filter((each) => each.key === key)).toHaveLength(1)
  const sent = device.heard.filter((each) => each.idempotency_key === key)
  expect(new Set(sent.map((each) => each.request_id)).size).toBe(1)
  expect(new Set(sent.map((each) => each.nonce)).size).toBe(sent.length)
})

test('without any answer the effect stays open until the device reports', async () => {
  await node()
  device.moods = ['drop_after', 'drop_before', 'drop_before', 'drop_before']
  const { key, as } = await approved('fs_write', write('later').args)
  const answer = await api.post(path, { body: write('later'), key, as })
  expect([answer.status, answer.body.code]).toEqual([504, 'EFFECT_RUNNING'])
  await api.owner.updateTable('effect').set({ startedAt: '2026-01-01T00:00:00Z' }).where('key', '=', key).execute()
  const effect = await api.get(`/effects/${encodeURIComponent(key)}`, { as })
  expect(effect.body).toMatchObject({ status: 'done', result: { approval_status: 'granted' } })
  expect(device.done.filter((each) => each.key === key)).toHaveLength(1)
})

test('a device that lost its journal cannot report, and the outcome stays unknown', async () => {
  await node()
  device.moods = ['drop_after']
  device.journalLost = true
  const { key, as } = await approved('fs_write', write('who knows').args)
  const answer = await api.post(path, { body: write('who knows'), key, as })
  expect([answer.status, answer.body.code]).toEqual([504, 'EFFECT_INDETERMINATE'])
  expect(await effectByKey(api.db, key)).toMatchObject({ status: 'indeterminate' })
  device.journalLost = false
})

test('a device that is down gets no write, and the model reads why', async () => {
  await node()
  await device.stop()
  const { key, as } = await approved('fs_write', write('nobody home').args)
  const answer = await api.post(path, { body: write('nobody home'), key, as })
  expect([answer.status, answer.body.code]).toEqual([424, 'device_unreachable'])
  expect(answer.body.detail).toContain('device_mesh: fs.write: device_unreachable')
  await device.resume()
  expect(device.files.get('/srv/app.conf')).not.toBe('nobody home')
})

test('a refusal of a device is reported with its own code, including timeout and approval_required', async () => {
  await node()
  const answer = await api.post(path, { body: write('by hand'), as: api.tokens.admin })
  expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
    403,
    'approval_required',
    'device_mesh: fs.write: approval_required: scripted: approval_required',
  ])
})

test('a write that exceeded its time on the device is reported as such, and is not sent again', async () => {
  await node()
  device.moods = ['timeout']
  const { key, as } = await approved('fs_write', write('too slow').args)
  const answer = await api.post(path, { body: write('too slow'), key, as })
  expect([answer.status, answer.body.code]).toEqual([424, 'timeout'])
  expect(answer.body.detail).toMatch(/^device_mesh: fs\.write: timeout: /)
  expect(await effectByKey(api.db, key)).toMatchObject({ status: 'failed', result: { error: 'timeout' } })
  const again = await api.post(path, { body: write('too slow'), key, as })
  expect(again.body.code).toBe('timeout')
  expect(device.done.some((each) => each.key === key)).toBe(false)
})

test('a forbidden command gets no grant, even with an approval', async () => {
  await node()
  const args = { argv: ['rm', '-rf', '/'] }
  const { key, as } = await approved('exec', args)
  const before = device.heard.length
  const answer = await api.post(path, { body: { capability: 'shell.exec', args }, key, as })
  expect([answer.status, answer.body.code]).toEqual([403, 'blocked'])
  expect(device.heard.length).toBe(before)
})

test('the state is read once more just before the write, and a changed state is not written to', async () => {
  await node()
  const { key, as } = await approved('fs_write', write('stale').args)
  const headers = { 'if-match': 'another-state' }
  const answer = await api.post(path, { body: write('stale'), key, as, headers })
  expect([answer.status, answer.body.code]).toEqual([412, 'STATE_CHANGED'])
  expect(device.done.some((each) => each.key === key)).toBe(false)
})

test('the lines of a long operation are rows of the incident while they arrive, without secrets', async () => {
  await node()
  device.lines = ['Reading package lists', 'password=hunter2hunter2', '\u001b[31mred\u001b[0m']
  device.lineEveryMs = 300
  const args = { packages: ['htop'] }
  const { key, as, incidentId } = await approved('pkg_install', args)
  expect((await api.post(path, { body: { capability: 'pkg.install', args }, key, as })).status).toBe(200)
  const rows = (await eventsOf(api.db, incidentId)).filter((event) => event.kind === 'tool_output')
  const lines = rows.flatMap((event) => (event.kind === 'tool_output' ? event.metadata.lines : []))
  expect(lines).toEqual(['Reading package lists', expect.not.stringContaining('hunter2'), 'red'])
})

test('a short operation has only its result', async () => {
  await node()
  device.lineEveryMs = 0
  const args = { packages: ['jq'] }
  const { key, as, incidentId } = await approved('pkg_install', args)
  expect((await api.post(path, { body: { capability: 'pkg.install', args }, key, as })).status).toBe(200)
  expect((await eventsOf(api.db, incidentId)).some((event) => event.kind === 'tool_output')).toBe(false)
})

test('three thousand lines become a few rows with the number of lines that were left out', async () => {
  await node()
  device.lines = Array.from({ length: 3_000 }, (_, index) => `line ${index} ${'x'.repeat(60)}`)
  device.lineEveryMs = 1
  const { key, as, incidentId } = await approved('shell_eval', { command: 'make noise' })
  const body = { capability: 'shell.eval', args: { command: 'make noise' } }
  const answer = await api.post(path, { body, key, as })
  if (answer.status !== 200)
    await eventually('the end', async () => (await effectByKey(api.db, key))?.status === 'done')
  const rows = (await eventsOf(api.db, incidentId)).filter((event) => event.kind === 'tool_output')
  expect(rows.length).toBeLessThanOrEqual(40)
  const kept = rows.reduce((sum, row) => sum + (row.kind === 'tool_output' ? row.metadata.lines.length : 0), 0)
  const left = rows.reduce((sum, row) => sum + (row.kind === 'tool_output' ? row.metadata.left : 0), 0)
  expect(kept + left).toBe(3_000)
  for (const row of rows) expect(JSON.stringify(row.metadata).length).toBeLessThan(6_000)
})

test('a person who stops the investigation stops what it runs on the device', async () => {
  await node()
  device.lines = Array.from({ length: 600 }, (_, index) => `step ${index}`)
  device.lineEveryMs = 50
  const args = { packages: ['slow'] }
  const { key, as, incidentId } = await approved('pkg_install', args)
  const running = api.post(path, { body: { capability: 'pkg.install', args }, key, as })
  await eventually('the first lines', async () =>
    (await eventsOf(api.db, incidentId)).some((event) => event.kind === 'tool_output'),
  )
  await api.post(`/incidents/${incidentId}/cancel`, { body: { reason: 'enough' } })
  const answer = await running
  expect([answer.status, answer.body.code]).toEqual([424, 'cancelled'])
  expect(device.cancelled).toHaveLength(1)
  device.lines = []
})
