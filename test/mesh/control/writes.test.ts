import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { eventsOf } from '../../../db/log/events.ts'
import { systemScope } from '../../../db/scope.ts'
import { callsOf } from '../../../db/writes/device-calls.ts'
import { effectByKey } from '../../../db/writes/effects.ts'
import { deviceTerms } from '../../../domain/device.ts'
import type { MeshHealth, MeshMode } from '../../../domain/mesh.ts'
import { findApprovalNeed } from '../../../effects/devices/approval-need.ts'
import type { MappedCall } from '../../../effects/devices/executor.ts'
import { specNamed } from '../../../mesh/registry.ts'
import { tools } from '../../../tools/registry.ts'
import { announced, asked } from '../../api/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { enrolled, prepared, ran, realAgent, stopDevicesAtEnd, usedApproval, useMeshApi } from './mesh-api.ts'
import type { ScriptedDevice } from './scripted-device.ts'

describe('writes', () => {
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

  test('a write that no person approved is not sent, however it is announced', async () => {
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

  test('the approval of one write lets no other through', async () => {
    await node()
    const { key, as } = await approved('fs_write', write('this').args)
    const before = device.heard.length
    expect((await api.post(path, { body: write('that'), key, as })).body.code).toBe('UNJUDGED')
    expect(device.heard.length).toBe(before)
  })

  test('a write sent again is answered again and done once, under the one grant there is', async () => {
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

  test('when no answer comes at all, the effect stays open until the device tells', async () => {
    await node()
    device.moods = ['drop_after', 'drop_before', 'drop_before', 'drop_before']
    const { key, as } = await approved('fs_write', write('later').args)
    const answer = await api.post(path, { body: write('later'), key, as })
    expect([answer.status, answer.body.code]).toEqual([504, 'EFFECT_RUNNING'])
    await api.db.updateTable('effect').set({ startedAt: '2026-01-01T00:00:00Z' }).where('key', '=', key).execute()
    const effect = await api.get(`/effects/${encodeURIComponent(key)}`, { as })
    expect(effect.body).toMatchObject({ status: 'done', result: { approval_status: 'granted' } })
    expect(device.done.filter((each) => each.key === key)).toHaveLength(1)
  })

  test('a device that lost its journal cannot tell, and neither do we', async () => {
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

  test('what a device refuses is told in its own word, timeout and approval_required too', async () => {
    await node()
    const answer = await api.post(path, { body: write('by hand'), as: api.tokens.admin })
    expect([answer.status, answer.body.code, answer.body.detail]).toEqual([
      ...[403, 'approval_required', 'device_mesh: fs.write: approval_required: scripted: approval_required'],
    ])
  })

  test('a write that ran out of time on the device is told so, and is not sent again', async () => {
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

  test('a command that is forbidden gets no grant, even with an approval', async () => {
    await node()
    const args = { argv: ['rm', '-rf', '/'] }
    const { key, as } = await approved('exec', args)
    const before = device.heard.length
    const answer = await api.post(path, { body: { capability: 'shell.exec', args }, key, as })
    expect([answer.status, answer.body.code]).toEqual([403, 'blocked'])
    expect(device.heard.length).toBe(before)
  })

  test('the state is looked at once more just before, and another one is not written to', async () => {
    await node()
    const { key, as } = await approved('fs_write', write('stale').args)
    const headers = { 'if-match': 'another-state' }
    const answer = await api.post(path, { body: write('stale'), key, as, headers })
    expect([answer.status, answer.body.code]).toEqual([412, 'STATE_CHANGED'])
    expect(device.done.some((each) => each.key === key)).toBe(false)
  })

  test('the lines of a long operation are rows of the incident while they come, without secrets', async () => {
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

  test('of an operation that is over at once the result tells all', async () => {
    await node()
    device.lineEveryMs = 0
    const args = { packages: ['jq'] }
    const { key, as, incidentId } = await approved('pkg_install', args)
    expect((await api.post(path, { body: { capability: 'pkg.install', args }, key, as })).status).toBe(200)
    expect((await eventsOf(api.db, incidentId)).some((event) => event.kind === 'tool_output')).toBe(false)
  })

  test('three thousand lines become a few rows that say how many were left out', async () => {
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
})

describe('asked', () => {
  describe('calls', () => {
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
          ...{ on: { kind: 'node', id: 'node-osl-1' }, device: 'node-osl-1', content: 'port = 80' },
          ...{ approval_status: 'auto_approved', cmd_executed: null, audit_hash: device.head },
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

    test('what a person asked of a device is in the audit under their name', async () => {
      const rows = (await api.get('/audit?what=device.called')).body.items as unknown as {
        who: string
        detail: string
      }[]
      expect(rows).toMatchObject([{ who: 'operator', detail: 'Asked: Read /srv/app.conf, on node-osl-1' }])
    })

    test('a long look of a run is followed line by line, and ends with its run', async () => {
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
  })

  describe('asked', () => {
    const api = useMeshApi()
    const logs = tools.get('search_logs')
    const place = temporaryDirectory()
    const on = 'node-osl-1'
    const files = join(place.path, 'srv')
    const secret = join(files, 'tls/server.key')
    const key = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    beforeAll(async () => {
      mkdirSync(join(files, 'tls'), { recursive: true })
      writeFileSync(secret, `# of the web server\n${key}`)
      writeFileSync(join(files, 'app.conf'), 'port = 80\n')
      await realAgent(api, on, { terms: { capabilities: [], roots: [{ path: files, writable: false }] } })
    })
    afterAll(() => place.remove())

    test('a file that a device holds for secret is asked about before it is read, and is not read unasked', async () => {
      const args = { on, path: secret }
      expect(await prepared(api, 'fs_read', args)).toMatchObject({
        asks: { risk: 'high', why: expect.stringContaining(`${on} holds ${secret} for secret`) },
      })
      const { answer } = await ran(api, 'fs_read', args, 'unasked')
      expect(answer).toMatchObject({ ok: false, status: 403, problem: { code: 'approval_required' } })
    })

    test('after a yes it is read once, under a grant, and what is secret in it reaches neither row nor model', async () => {
      const { answer, stepKey } = await ran(api, 'fs_read', { on, path: secret }, 'approved')
      expect(answer).toMatchObject({ ok: true, data: { approval_status: 'granted', path: secret } })
      const { content } = (answer as { data: { content: string } }).data
      expect(content).toMatch(/^# of the web server\n-----BEGIN PRIVATE KEY-----\[redacted:private_key\]/)
      const body = key.split('\n')[1] ?? ''
      expect(body.length).toBeGreaterThan(40)
      const stored = await effectByKey(api.db, stepKey)
      expect(stored).toMatchObject({ status: 'done', result: { content } })
      expect(JSON.stringify([answer, stored])).not.toContain(body)
    })

    test('a part of it, or what is no text, is not read even then: nobody could tell what to leave out', async () => {
      writeFileSync(join(files, 'store.p12'), Buffer.from([0, 1, 2, 255]))
      for (const [args, code] of [
        [{ path: secret, offset: 40 }, 'blocked'],
        [{ path: secret, max_bytes: 60 }, 'blocked'],
        [{ path: join(files, 'store.p12') }, 'blocked'],
      ] as const) {
        const { answer } = await ran(api, 'fs_read', { on, ...args }, 'approved')
        expect(answer).toMatchObject({
          ok: false,
          status: 403,
          problem: { code, detail: expect.stringContaining('whole') },
        })
      }
      expect(await prepared(api, 'fs_read', { on, path: secret, offset: 40 })).not.toHaveProperty('asks')
    })

    test('a file that nobody holds for secret is read unasked', async () => {
      const args = { on, path: join(files, 'app.conf') }
      expect(await prepared(api, 'fs_read', args)).not.toHaveProperty('asks')
      const { answer } = await ran(api, 'fs_read', args, 'unasked')
      expect(answer).toMatchObject({ ok: true, data: { content: 'port = 80\n', approval_status: 'auto_approved' } })
    })

    test('logs of a device are asked for by search_logs as by its own tool: unasked, and under a grant where a person had to agree', async () => {
      writeFileSync(join(files, 'app.log'), `${new Date().toISOString()} pool exhausted\n`)
      const args = logs?.input.parse({ on, path: join(files, 'app.log') }) as Record<string, unknown>
      expect(await prepared(api, 'search_logs', args)).toMatchObject({
        targets: [{ kind: 'node', id: on }],
        identity: args,
        dryRun: { details: { capability: 'log.read' } },
      })
      expect(await prepared(api, 'search_logs', { labels: { instance: 'web-1' } })).toMatchObject({ targets: [] })
      for (const how of ['unasked', 'approved'] as const) {
        const { answer } = await ran(api, 'search_logs', args, how)
        expect(answer).toMatchObject({ ok: true, data: { source: on, summary: { lines: 1, templatesFound: 1 } } })
        expect(logs?.output.safeParse((answer as { data: unknown }).data).success).toBe(true)
      }
    })

    describe('a checkout whose settings start a program', () => {
      const checkout = join(place.path, 'checkout')
      const command = { on, command: 'git status --short', cwd: checkout }
      beforeAll(() => {
        execFileSync('git', ['init', '-q', checkout])
        writeFileSync(join(checkout, 'new'), 'x')
        execFileSync('git', ['-C', checkout, 'config', 'core.fsmonitor', '/usr/bin/false'])
        // Root's own settings are believed, so they are somebody else's here.
        chmodSync(join(checkout, '.git/config'), 0o666)
      })

      test('is asked about before it is looked at, with what the device found, and is not looked at unasked', async () => {
        expect(await prepared(api, 'shell_eval', command)).toMatchObject({
          asks: {
            risk: 'medium',
            why: `${on} does not do it unasked: git: git would obey its setting core.fsmonitor in ${checkout}`,
          },
        })
        const { answer } = await ran(api, 'shell_eval', command, 'unasked')
        expect(answer).toMatchObject({ ok: false, status: 403, problem: { code: 'approval_required' } })
      })

      test('after a yes it is looked at, and its program is switched off all the same', async () => {
        const { answer } = await ran(api, 'shell_eval', command, 'approved')
        expect(answer).toMatchObject({ ok: true, data: { approval_status: 'granted', stdout: '?? new\n', stderr: '' } })
      })

      test('one with plain settings is looked at unasked', async () => {
        execFileSync('git', ['-C', checkout, 'config', '--unset', 'core.fsmonitor'])
        expect(await prepared(api, 'shell_eval', command)).not.toHaveProperty('asks')
        const { answer } = await ran(api, 'shell_eval', command, 'unasked')
        expect(answer).toMatchObject({ ok: true, data: { approval_status: 'auto_approved', stdout: '?? new\n' } })
      })
    })

    type Changes = { mode?: MeshMode; sandbox?: MeshHealth['sandbox']; auto_approve?: string[] }
    function asked(
      tool: string,
      input: Record<string, unknown>,
      { mode = 'all', sandbox = 'bwrap', auto_approve }: Changes,
    ) {
      const spec = specNamed(tool)
      if (!spec) throw new Error(`no ${tool}`)
      const roots = [{ path: '/etc/', writable: false }]
      const terms = deviceTerms.parse({ capabilities: [], roots, ...(auto_approve && { auto_approve }) })
      const mapped: MappedCall = { spec, input, capability: spec.capability, args: spec.toArgs(input) }
      return findApprovalNeed({ id: 'n1', mode, terms, health: { sandbox } as MeshHealth }, mapped)?.why ?? null
    }

    test.each<[string, string, Record<string, unknown>, Changes, string | null]>([
      [
        'a list of a directory of keys',
        'fs_list',
        { path: '/etc/ssl/private' },
        {},
        'n1 holds /etc/ssl/private for secret; what is not recognised as a secret is read',
      ],
      ['what is outside the roots, which is refused anyway', 'fs_read', { path: '/root/.ssh/id_rsa' }, {}, null],
      ['a look where nothing confines it', 'proc_list', {}, { sandbox: 'none' }, 'n1 cannot confine what it reads'],
      [
        'a command where nothing confines it',
        'exec',
        { argv: ['uptime'] },
        { sandbox: 'none' },
        'n1 cannot confine what it reads',
      ],
      ['a program that the manifest lists', 'exec', { argv: ['uptime'] }, { auto_approve: ['uptime'] }, null],
      [
        'one that it does not list',
        'exec',
        { argv: ['df', '-h'] },
        { auto_approve: ['uptime'] },
        'the manifest of n1 lets no df run unasked',
      ],
      [
        'what obeys files of the place, where another user is all that confines it',
        'exec',
        { argv: ['git', 'status'] },
        { sandbox: 'user' },
        'git obeys files of the place, and n1 confines reads as another user alone',
      ],
      ['what obeys nothing, there', 'exec', { argv: ['uptime'] }, { sandbox: 'user' }, null],
      [
        'what obeys files of a container, which nobody can look at',
        'docker_exec',
        { container: 'web', argv: ['git', 'status'] },
        {},
        expect.stringContaining('nobody can look at that beforehand') as never,
      ],
      ['what obeys nothing in a container', 'docker_exec', { container: 'web', argv: ['cat', '/etc/hosts'] }, {}, null],
      [
        'a host that the device does not know',
        'exec',
        { argv: ['curl', '-s', 'http://db-1/health'] },
        {},
        expect.stringContaining('n1') as never,
      ],
      ['a command that the judge asks about itself', 'exec', { argv: ['touch', '/x'] }, {}, null],
      ['one that is never run', 'exec', { argv: ['rm', '-rf', '/'] }, {}, null],
      [
        'a write, which is asked anyway',
        'fs_write',
        { path: '/etc/ssl/private/x', content: '' },
        { sandbox: 'none' },
        null,
      ],
      [
        'everything as root',
        'fs_stat',
        { path: '/etc/hosts' },
        { mode: 'sudo' },
        'n1 does everything as root, so everything is asked',
      ],
    ])('what a device would ask about: %s', (_, tool, input, changes, why) => {
      expect(asked(tool, input, changes)).toEqual(why)
    })
  })
})
