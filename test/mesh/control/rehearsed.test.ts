import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { grant } from '../../../db/approvals/grants.ts'
import { append } from '../../../db/log/append.ts'
import { actionDigest } from '../../../domain/digest.ts'
import { agentActor } from '../../../domain/event.ts'
import { parseRehearsal } from '../../../domain/format-approval.ts'
import { plainPolicy } from '../../../domain/refusal.ts'
import type { Preparation } from '../../../domain/tool.ts'
import { fold } from '../../../safety/fold.ts'
import { judge } from '../../../safety/judge.ts'
import { toolFacts } from '../../../tools/registry.ts'
import { announced, approvedBySomebody, asked, consumed } from '../../api/announced.ts'
import { claimedIncident } from '../../support/database.ts'
import { temporaryDirectory } from '../../support/directory.ts'
import { logOf, looked } from '../../support/events.ts'
import {
  enrolled,
  prepared,
  proposed as proposedCall,
  type RealAgent,
  ran,
  realAgent,
  stopDevicesAtEnd,
  usedApproval,
  useMeshApi,
} from './mesh-api.ts'
import type { ScriptedDevice } from './scripted-device.ts'

describe('rehearsed', () => {
  describe('rehearsed', () => {
    // Through the whole path: the registry's tool, the core API over HTTP, the agent as a separate process.

    const api = useMeshApi()
    const place = temporaryDirectory()
    const on = 'node-osl-1'
    let child: ChildProcess
    let agentPid = 0

    /** As if it were the program: it says with which words it was started. */
    const rsync = '#!/bin/sh\necho "rsync got $*"\n[ "$1" = --dry-run ] || touch "$(dirname "$0")/../really"\n'

    beforeAll(async () => {
      chmodSync(place.path, 0o777)
      child = spawn('sleep', ['300'], { stdio: 'ignore' })
      const terms = { capabilities: [], roots: [{ path: place.path, writable: true }] }
      agentPid = (await realAgent(api, on, { terms }, { rsync })).pid
    })
    afterAll(() => {
      child.kill('SIGKILL')
      place.remove()
    })

    async function card(tool: string, args: Record<string, unknown>) {
      const found = await prepared(api, tool, { on, reason: 'because it must be', ...args })
      const { lines, untried } = parseRehearsal(found?.dryRun.details ?? {}) ?? { lines: [], untried: [] }
      return { found, said: lines.join('\n'), untried: untried.join('\n') }
    }

    test('a command is tried by the switch of its program that changes nothing, and the card says what that said', async () => {
      const { found, said } = await card('exec', { argv: ['rsync', '-a', '/srv/a/', '/srv/b/'] })
      expect(found?.dryRun.possible).toBe(true)
      expect(said).toMatch(
        /^rsync --dry-run --itemize-changes -a -- \/srv\/a\/ \/srv\/b\/ says:\n {2}rsync got --dry-run /m,
      )
      expect(said).toMatch(/^program rsync: \/usr\/local\/sbin\/rsync, /m)
    })

    test('what could not be tried is no dry run, and what was looked at is told all the same', async () => {
      const { found, said, untried } = await card('shell_eval', { command: `make -C ${place.path} all` })
      expect(found?.dryRun.possible).toBe(false)
      expect(said).toMatch(/^runs as user /m)
      expect(untried).toContain('make was not tried: no way is known to try make that changes nothing.')
      expect(found?.dryRun.details.rehearsal).not.toHaveProperty('rests_on')
    })

    test('a write is asked about again when what the card showed is not so any more', async () => {
      const at = join(place.path, 'old')
      mkdirSync(at)
      writeFileSync(join(at, 'a'), '1')
      const args = { argv: ['rm', '-r', at] }
      const before = await card('exec', args)
      expect(before.said).toContain('would go: 1 files, 1 directories, 1 bytes')
      expect((await card('exec', args)).found?.stateFingerprint).toBe(before.found?.stateFingerprint)
      writeFileSync(join(at, 'b'), 'somebody needs this')
      const id = await claimedIncident(api.db)
      const identity = { on, ...args }
      const key = await announced(api.db, id, 'exec', identity, await usedApproval(api, id, 'exec', identity))
      const answer = await api.post(`/devices/${on}/calls`, {
        body: { capability: 'shell.exec', args },
        headers: { 'if-match': String(before.found?.stateFingerprint) },
        ...{ key, as: api.tokens.agent },
      })
      expect([answer.status, answer.body.code]).toEqual([412, 'STATE_CHANGED'])
      expect(readFileSync(join(at, 'b'), 'utf8')).toBe('somebody needs this')
    })

    test('a look is not rehearsed', async () => {
      const { found } = await card('exec', { argv: ['uptime'] })
      expect(found?.dryRun.details).not.toHaveProperty('rehearsal')
    })

    test('before a process is signalled the card names it, and another one under its number is refused', async () => {
      const { pid = 0 } = child
      const asked = (pid: number) => ({ on, reason: 'because', pid, start_time: startTime(pid) })
      const { said } = await card('proc_kill', asked(pid))
      expect(said).toContain(`process ${pid} (sleep) of user `)
      expect(said).toMatch(/^started: .* UTC\ncommand line: sleep 300\nservice: /m)
      const other = prepared(api, 'proc_kill', { ...asked(pid), start_time: '1' })
      await expect(other).rejects.toThrow(`${pid} is another process now`)
      await expect(prepared(api, 'proc_kill', asked(agentPid))).rejects.toThrow(`${agentPid} is the agent itself`)
    })

    const startTime = (pid: number) => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ')[19] ?? ''
  })

  describe('root read', () => {
    // What goes through: the registry's tool, the judge, core API, signature, the agent's door, guard and journal, a set-user-ID program.

    const api = useMeshApi()
    const place = temporaryDirectory()
    const on = 'node-osl-1'
    const root_reads = [
      ['/usr/bin/id', '-u'],
      ['/usr/bin/nproc', '--all'],
    ]
    const terms = { capabilities: [], roots: [], root_reads }
    let agent: RealAgent
    afterAll(() => place.remove())

    /** What the judge makes of a call with what the tool found out about it. */
    function verdictOn(tool: string, args: Record<string, unknown>, preparation: Preparation | undefined) {
      const node = { kind: 'node' as const, id: on }
      const incidentId = 'inc_00000000000000000000000001'
      const state = fold(logOf(looked('c0_0', [node])), 1, node)
      const call = { callId: 'c1_0', tool, arguments: args, problem: null }
      const found = preparation ? { ok: true as const, preparation } : null
      const now = Date.parse('2026-11-21T02:00:10Z')
      return judge({ ...call, prepared: found }, toolFacts, state, plainPolicy(incidentId, node), now)
    }

    const asRoot = process.getuid?.() === 0 ? describe : describe.skip
    asRoot('a device whose manifest lets root look with a command', () => {
      beforeAll(async () => {
        const tools = join(place.path, 'tools')
        mkdirSync(tools)
        // util-linux's own `unshare -n -- program` starts the program; with the set-user-ID bit, as root.
        copyFileSync('/usr/bin/unshare', join(tools, 'sudo'))
        chmodSync(join(tools, 'sudo'), 0o4755)
        copyFileSync('/usr/bin/nproc', join(tools, 'nproc'))
        chmodSync(join(tools, 'nproc'), 0o775)
        agent = await realAgent(api, on, { mode: 'user', terms }, {}, tools)
      })

      test.each([
        ['exec', { on, argv: ['sudo', '-n', '/usr/bin/id', '-u'] }],
        ['shell_eval', { on, command: 'sudo -n /usr/bin/id -u | head -n 1' }],
      ])('runs it by %s without asking anybody, and the judge and the device agree', async (tool, args) => {
        const found = await prepared(api, tool, args)
        expect(found).not.toHaveProperty('asks')
        expect(verdictOn(tool, args, found)).toMatchObject({ verdict: 'run', code: 'READ_COMMAND', effect: 'read' })
        const { answer } = await ran(api, tool, args, 'unasked')
        expect(answer).toMatchObject({ ok: true, data: { stdout: '0\n', approval_status: 'auto_approved' } })
      })

      test.each([
        [['sudo', '-n', '/usr/bin/id', '-u', '-r']],
        [['sudo', '-n', '-E', '/usr/bin/id', '-u']],
        [['sudo', '-n', 'id', '-u']],
      ])('asks two people about %j', async (argv) => {
        const args = { on, argv }
        const found = await prepared(api, 'exec', args)
        expect(verdictOn('exec', args, found)).toMatchObject({ verdict: 'ask', risk: 'critical' })
        const { answer } = await ran(api, 'exec', args, 'unasked')
        expect(answer).toMatchObject({ ok: false, problem: { code: 'approval_required' } })
      })

      test('asks where others than root may change the program, with what the device found', async () => {
        const args = { on, argv: ['sudo', '-n', '/usr/bin/nproc', '--all'] }
        const found = await prepared(api, 'exec', args)
        expect(found?.asks).toMatchObject({
          risk: 'critical',
          why: expect.stringContaining('others than root may write /usr/bin/nproc'),
        })
        expect(verdictOn('exec', args, found)).toMatchObject({ verdict: 'ask', risk: 'critical' })
      })

      test('asks where the device holds an older manifest than the one that allows it', async () => {
        const newer = { ...terms, root_reads: [...root_reads, ['/usr/bin/uptime']] }
        const { body } = await api.get(`/devices/${on}`)
        expect((await api.put(`/devices/${on}`, { body: { url: body.url, mode: 'user', terms: newer } })).status).toBe(
          200,
        )
        const args = { on, argv: ['sudo', '-n', '/usr/bin/uptime'] }
        const found = await prepared(api, 'exec', args)
        expect(found?.asks?.why).toBe(`the manifest that ${on} holds does not allow it as root`)
        expect(verdictOn('exec', args, found)).toMatchObject({ verdict: 'ask', risk: 'critical' })
        await api.put(`/devices/${on}`, { body: { url: body.url, mode: 'user', terms } })
      })

      test('says in its own journal what root looked with', () => {
        expect(readFileSync(join(agent.state, 'journal/000000001.jsonl'), 'utf8')).toContain('sudo -n /usr/bin/id -u')
      })
    })

    test('a manifest without such commands says nothing of them, so that older agents go on reading theirs', async () => {
      const body = { url: 'http://127.0.0.1:1', mode: 'user', terms: { capabilities: [], roots: [], root_reads: [] } }
      expect((await api.put('/devices/host-osl-1', { body })).status).toBe(200)
      const { body: minted } = await api.post('/devices/host-osl-1/enrolment')
      const response = await api.api.app.request('/mesh/enrolments', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ token: minted.token }),
      })
      const text = await response.text()
      expect(text).toContain('"auto_approve"')
      expect(text).not.toContain('root_reads')
    })

    test.each([
      [[['-n', 'id']]],
      [[['A=b', 'id']]],
      [[[]]],
      [[['./id']]],
      [[['id', 'a\nb']]],
      [[['id', '\u202e']]],
      ['id -u'],
    ])('%j is no list of commands', async (root_reads) => {
      const body = { url: 'http://127.0.0.1:1', mode: 'user', terms: { capabilities: [], roots: [], root_reads } }
      expect((await api.put('/devices/host-osl-1', { body })).status).toBe(422)
    })
  })
})

describe('preparation', () => {
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

  test('another state of the file is another fingerprint, and the same state the same', async () => {
    const key = await proposed('fs_write', write)
    const first = (await prepare('node-osl-1', key)).body.stateFingerprint
    expect((await prepare('node-osl-1', key)).body.stateFingerprint).toBe(first)
    node.files.set('/srv/app.conf', 'port = 8080')
    expect((await prepare('node-osl-1', key)).body.stateFingerprint).not.toBe(first)
    node.files.set('/srv/app.conf', 'port = 80')
  })

  test('nothing is rehearsed that no run proposed: another place, an older attempt, a call with a secret', async () => {
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

  test('on a device where everything is done as root, even a look is to be asked', async () => {
    await enrolled(api, 'node-osl-2', { mode: 'sudo' })
    const answer = await prepare('node-osl-2', await proposed('fs_read', { on: 'node-osl-2', path: '/srv/x' }))
    expect(answer.body).toMatchObject({ asks: { risk: 'critical' }, dryRun: { possible: false } })
  })

  test('an approved look on such a device is done under a grant, and what it read comes back', async () => {
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

  test('a standing grant mints one device grant for each use that a run took', async () => {
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
      .execute((trx) => grant(trx, approval as never, anna, { uses: 2, hours: 1 }))
    const body = { capability: 'fs.write', args }
    const unused = await announced(api.db, id, 'fs_write', identity)
    expect((await api.post('/devices/node-osl-1/calls', { body, key: unused, as: api.tokens.agent })).body.code).toBe(
      'UNJUDGED',
    )
    for (const round of [1, 2]) {
      const key = await announced(api.db, id, 'fs_write', identity)
      await api.db.transaction().execute((trx) =>
        append(trx, id, 1, {
          ...{ kind: 'grant_used', actor: agentActor, detail: '', stepKey: key.replace('tool_started', 'grant_used') },
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

  test('a VM without an agent is reached through that of its host, and what cannot go there says so', async () => {
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

  test('a container that is a guest of the inventory is touched as that guest, too, and another one is not', async () => {
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

  test('what was promised is looked at on the device: a killed process is gone, a file holds what was written', async () => {
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
})
