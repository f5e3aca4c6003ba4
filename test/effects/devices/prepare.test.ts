import { beforeAll, expect, test } from '@jest/globals'
import { storeGrant } from '../../../db/approvals/grants.ts'
import { append } from '../../../db/log/append.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import { firstPlaceOfCode, stepKey } from '../../../domain/step-key.ts'
import { announced, approvedBySomebody, asked, consumed } from '../../support/announced.ts'
import { claimedIncident, openedIncident } from '../../support/database.ts'
import { enrolled, prepared, proposed as proposedCall, stopDevicesAtEnd, useMeshApi } from '../../support/mesh-api.ts'
import type { ScriptedDevice } from '../../support/scripted-device.ts'

const api = useMeshApi()
stopDevicesAtEnd()
let node: ScriptedDevice
let host: ScriptedDevice

beforeAll(async () => {
  node = await enrolled(api, 'node-osl-1')
  node.files.set('/srv/app.conf', 'port = 80')
  host = await enrolled(api, 'host-osl-1', { guests: 'docker' })
})

const proposed = (tool: string, args: Record<string, unknown>, more: { secret?: boolean } = {}) =>
  proposedCall(api.db, tool, args, more)
const prepare = (on: string, key: string, as = api.tokens.agent) =>
  api.get(`/devices/${on}/preparation?key=${encodeURIComponent(key)}`, { as })

const write = { on: 'node-osl-1', path: '/srv/app.conf', content: 'port = 81', reason: 'because' }

test('a proposed write is rehearsed: diff and checks come back, and nothing is changed', async () => {
  const answer = await prepare('node-osl-1', await proposed('fs_write', write))
  expect(answer.body).toMatchObject({
    resource: { kind: 'node', id: 'node-osl-1' },
    dryRun: {
      possible: true,
      summary: 'Write 9 characters as /srv/app.conf, on node-osl-1',
      details: { rehearsal: { diff: '-port = 80\n+port = 81', checks: [{ exit_code: 0, output: 'ok' }] } },
    },
  })
  expect(node.files.get('/srv/app.conf')).toBe('port = 80')
})

test('another state of the file has another fingerprint, and the same state the same', async () => {
  const key = await proposed('fs_write', write)
  const first = (await prepare('node-osl-1', key)).body.stateFingerprint
  expect((await prepare('node-osl-1', key)).body.stateFingerprint).toBe(first)
  node.files.set('/srv/app.conf', 'port = 8080')
  expect((await prepare('node-osl-1', key)).body.stateFingerprint).not.toBe(first)
  node.files.set('/srv/app.conf', 'port = 80')
})

test('a call that no run proposed is not rehearsed: another place, an older attempt, a call with a secret', async () => {
  const key = await proposed('fs_write', write)
  const superseded = await proposed('fs_write', write)
  await api.db
    .updateTable('incident')
    .set({ attempt: 2 })
    .where('id', '=', superseded.split('.')[0] ?? '')
    .execute()
  const heard = node.heard.length
  for (const wrong of [
    key.replace(/:0$/, ':1'),
    key.replace(':tool_started:', ':tool_finished:'),
    superseded,
    await proposed('fs_write', write, { secret: true }),
    await proposed('converge_shard', { id: 'db-osl-1' }),
    'api:anything',
  ]) {
    expect([wrong, (await prepare('node-osl-1', wrong)).status]).toEqual([wrong, 404])
  }
  expect(node.heard.length).toBe(heard)
  expect((await prepare('node-osl-1', key, api.tokens.viewer)).status).toBe(403)
})

test('a read by code for a follower is prepared like a proposed one, so whether it needs approval is known before it is judged', async () => {
  const run = { incidentId: await claimedIncident(api.db), attempt: 1 }
  const none = { digest: '0'.repeat(64), bytes: 0, head: '', tail: '' }
  const look = (path: string) => ({ tool: 'fs_read', arguments: { on: 'node-osl-1', path } })
  await api.db.transaction().execute(async (trx) => {
    await append(trx, run.incidentId, 1, {
      kind: 'context_assembled',
      actor: agentActor,
      stepKey: stepKey(run, 0, 'context_assembled', 0),
      detail: 'Gathered context',
      metadata: {
        ...{ prompt: none, tools: none, context: none, protocol: 'native', model: 'scripted', parts: {} },
        ...{ hintFrom: null, maxTurns: 10, deadline: '60 s of work', tokenBudget: 1_000 },
        looks: { before: [look('/srv/app.conf')], write: 'fs_write', after: [look('/srv/.env')] },
      },
    })
  })
  const at = (turn: number, place: number) => stepKey(run, turn, 'tool_started', firstPlaceOfCode + place)
  const first = await prepare('node-osl-1', at(0, 0))
  expect(first.body).toMatchObject({ resource: { id: 'node-osl-1' }, device: 'node-osl-1' })
  expect(first.body.asks).toBeUndefined()
  expect((await prepare('node-osl-1', at(3, 0))).body).toMatchObject({ asks: { risk: 'high' } })
  expect((await prepare('node-osl-1', at(0, 1))).status).toBe(404)
})

test('an agent whose answer is no list of files has no log files, which is no error', async () => {
  const incidentId = await openedIncident(api.db, { labels: { alertname: 'x', node: 'node-osl-1' } })
  const { status, body } = await api.get(`/incidents/${incidentId}/log-files`)
  expect([status, body]).toEqual([200, { items: [] }])
})

test('on a device where everything runs as root, every read needs an approval', async () => {
  await enrolled(api, 'node-osl-2', { mode: 'sudo' })
  const answer = await prepare('node-osl-2', await proposed('fs_read', { on: 'node-osl-2', path: '/srv/x' }))
  expect(answer.body).toMatchObject({ asks: { risk: 'critical' }, dryRun: { possible: false } })
})

test('an approved read on such a device runs under a grant, and returns its result', async () => {
  const args = { on: 'node-osl-2', path: '/srv/x' }
  const id = await claimedIncident(api.db)
  const approvalId = await asked(api.db, id, { tool: 'fs_read', identity: args })
  await approvedBySomebody(api.db, approvalId)
  await consumed(api.db, id, approvalId)
  const key = await announced(api.db, id, 'fs_read', args, approvalId)
  const body = { capability: 'fs.read', args: { path: '/srv/x' } }
  expect((await api.post('/devices/node-osl-2/calls', { body, as: api.tokens.operator })).body.code).toBe(
    'approval_required',
  )
  const answer = await api.post('/devices/node-osl-2/calls', { body, key, as: api.tokens.agent })
  expect([answer.status, answer.body.code]).toEqual([404, 'not_found'])
})

test('a standing grant makes one device grant for each use by a run', async () => {
  const args = { path: '/srv/app.conf', content: 'granted' }
  const identity = { ...args, on: 'node-osl-1' }
  const id = await claimedIncident(api.db)
  const approvalId = await asked(api.db, id, { tool: 'fs_write', identity })
  const approval = await api.db
    .selectFrom('approval')
    .selectAll()
    .where('id', '=', approvalId)
    .executeTakeFirstOrThrow()
  const { id: anna } = await api.db.selectFrom('operator').select('id').limit(1).executeTakeFirstOrThrow()
  const grantId = await api.db
    .transaction()
    .execute((trx) => storeGrant(trx, approval as never, anna, { uses: 2, hours: 1 }))
  const body = { capability: 'fs.write', args }
  const unused = await announced(api.db, id, 'fs_write', identity)
  expect((await api.post('/devices/node-osl-1/calls', { body, key: unused, as: api.tokens.agent })).body.code).toBe(
    'UNJUDGED',
  )
  for (const round of [1, 2]) {
    const key = await announced(api.db, id, 'fs_write', identity)
    await api.db.transaction().execute((trx) =>
      append(trx, id, 1, {
        kind: 'grant_used',
        actor: agentActor,
        detail: '',
        stepKey: key.replace('tool_started', 'grant_used'),
        metadata: { approvalId, grantId, usesLeft: 2 - round },
      }),
    )
    const answer = await api.post('/devices/node-osl-1/calls', { body, key, as: api.tokens.agent })
    expect([round, answer.status]).toEqual([round, 200])
  }
  const granted = node.heard.filter((each) => each.grant?.authority === grantId)
  expect(new Set(granted.map((each) => each.grant?.id)).size).toBe(2)
  expect(actionDigest('fs_write', identity)).toBe(approval.actionDigest)
})

test('a VM without an agent is reached through the agent of its host, and what cannot go there says so', async () => {
  const answer = await api.post('/devices/vm-1/calls', {
    body: { capability: 'shell.exec', args: { argv: ['uptime'] } },
  })
  expect(host.heard.at(-1)).toMatchObject({
    capability: 'docker.container.exec',
    args: { container: 'vm-1', argv: ['uptime'] },
  })
  expect([answer.status, answer.body.code]).toEqual([403, 'approval_required'])
  const file = await api.post('/devices/vm-1/calls', { body: { capability: 'fs.read', args: { path: '/srv/x' } } })
  expect([file.status, file.body.code]).toEqual([424, 'capability_unavailable'])
  const lone = await api.post('/devices/vm-2/calls', {
    body: { capability: 'shell.exec', args: { argv: ['uptime'] } },
  })
  expect([lone.status, lone.body.detail]).toEqual([424, expect.stringContaining('vm vm-2 has no agent')])
})

test('a container that is a guest of the inventory is touched as that guest, and another container is not', async () => {
  const args = (container: string) => ({ on: 'host-osl-1', container, argv: ['nginx', '-s', 'reload'] })
  const touches = async (container: string) => {
    const found = await prepared(api, 'docker_exec', { ...args(container), reason: 'because' })
    return found?.targets
  }
  const on = { kind: 'host', id: 'host-osl-1' }
  expect(await touches('vm-1')).toEqual([on, { kind: 'vm', id: 'vm-1' }])
  // It runs on another host: this container only has its name.
  expect(await touches('vm-2')).toEqual([on])
  expect(await touches('web')).toEqual([on])
})

test('a promise is verified on the device: a killed process is gone, a file has what was written', async () => {
  node.processes = [{ pid: 4711, start_time: '99', name: 'runaway' }]
  const id = await claimedIncident(api.db)
  const args = { on: 'node-osl-1', pid: 4711, start_time: '99', signal: 'TERM' }
  const key = await announced(api.db, id, 'proc_kill', args)
  const observe = (on: string) =>
    api.get(`/devices/${on}/observation?key=${encodeURIComponent(key)}`, { as: api.tokens.agent })
  expect((await observe('node-osl-1')).body).toEqual({ holds: false, observed: 'process 4711 still runs' })
  // The same number, and another process: the one that was meant is gone.
  node.processes = [{ pid: 4711, start_time: '100', name: 'another' }]
  expect((await observe('node-osl-1')).body).toEqual({ holds: true, observed: 'the process is gone' })
  expect((await observe('host-osl-1')).status).toBe(404)
})
