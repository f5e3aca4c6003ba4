import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { type CapabilityRequest, type Manifest, manifest as manifestSchema } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import { type GuardContext, rule } from '../../../mesh/agent/guard.ts'
import type { TrustedKeys } from '../../../mesh/agent/manifest.ts'
import { bodyBytes, type VerificationContext, verifyCall, verifyCancel } from '../../../mesh/agent/verify-request.ts'
import { signed, writePublicKey } from '../../../mesh/sign.ts'
import { runCli } from '../../cli/run-cli.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import {
  aGrant,
  aGranted,
  aLeave,
  aManifest,
  aRequest,
  inSeconds,
  keys,
  newRequestId,
  type Running,
  startAgent,
} from './running.ts'

describe('refusals', () => {
  const own = keys()
  const stranger = { id: own.control.id, key: generateKeyPairSync('ed25519').privateKey }
  let agent: Running
  let place: ReturnType<typeof temporaryDirectory>
  beforeAll(async () => {
    agent = await startAgent(own)
    place = temporaryDirectory()
  })
  afterAll(async () => {
    await agent.stop()
    place.remove()
  })

  const exec = (argv: string[], changes: Record<string, unknown> = {}) => aRequest(own, 'shell.exec', { argv }, changes)

  test('a signed read runs at once and says what it did', async () => {
    const { status, answer } = await agent.call('shell.exec', { argv: ['uptime'] })
    expect(status).toBe(200)
    expect(answer).toMatchObject({
      status: 'done',
      ok: true,
      error: null,
      approval_status: 'auto_approved',
      cmd_executed: 'uptime',
      truncated: false,
      result: { exit_code: 0, stderr: '', stdout: expect.stringContaining('load average'), cmd_executed: 'uptime' },
    })
    expect(answer.audit_hash).toMatch(/^[0-9a-f]{64}$/)
  })

  test('a write needs a grant, and is done once with it', async () => {
    const file = join(place.path, 'granted')
    const asked = await agent.call('shell.exec', { argv: ['touch', file] })
    expect(asked).toMatchObject({
      status: 403,
      answer: { error: { code: 'approval_required' }, approval_status: 'required' },
    })
    expect(existsSync(file)).toBe(false)
    expect(await agent.granted('shell.exec', { argv: ['touch', file] })).toMatchObject({
      status: 200,
      answer: { ok: true, approval_status: 'granted' },
    })
    expect(existsSync(file)).toBe(true)
  })

  test('a forged, replayed, expired, foreign and altered grant are told apart, and nothing is done', async () => {
    const args = { argv: ['touch', join(place.path, 'never')] }
    const withGrant = (changes: Record<string, unknown>, key = own.control) => {
      const request_id = newRequestId()
      const grant = signed(aGrant(own, { request_id, capability: 'shell.exec', args }, changes), key)
      return aRequest(own, 'shell.exec', args, { request_id, grant })
    }
    const used = aGranted(own, 'shell.exec', { argv: ['true'] }) as ReturnType<typeof aRequest>
    expect((await agent.post(used)).answer.ok).toBe(true)
    const { request_id, grant } = used
    const again = aRequest(own, 'shell.exec', { argv: ['true'] }, { request_id, grant })

    const codes = []
    for (const request of [
      withGrant({}, stranger),
      again,
      withGrant({ expires_at: inSeconds(-1) }),
      withGrant({ device: 'web-2' }),
      withGrant({ args_digest: 'b'.repeat(64) }),
    ]) {
      const { status, answer } = await agent.post(request)
      expect([status, answer.ok, answer.result]).toEqual([403, false, null])
      codes.push(answer.error?.code)
    }
    expect(codes).toEqual(['grant_forged', 'grant_replayed', 'grant_expired', 'grant_wrong_device', 'grant_altered'])
    expect(existsSync(join(place.path, 'never'))).toBe(false)
  })

  test.each([
    ['no JSON', () => 'x', 400, 'malformed'],
    ['a stranger signed', () => signed(exec(['uptime']), stranger), 401, 'bad_signature'],
    [
      'a key that is not in the manifest',
      () => signed(exec(['uptime']), { ...stranger, id: 'cp-9' }),
      401,
      'unknown_key',
    ],
    ['another device', () => exec(['uptime'], { device: 'web-2' }), 403, 'wrong_device'],
    ['another time', () => exec(['uptime'], { issued_at: inSeconds(-400) }), 401, 'clock_skew'],
    ['a deadline that has passed', () => exec(['uptime'], { deadline: inSeconds(-1) }), 400, 'bad_deadline'],
    ['the hard list', () => aGranted(own, 'shell.exec', { argv: ['rm', '-rf', '/'] }), 403, 'blocked'],
    ['arguments it does not take', () => aRequest(own, 'shell.exec', { argv: 'uptime' }), 422, 'invalid_arguments'],
    [
      'a capability that no agent knows',
      () => aRequest(own, 'fs.delete', { path: '/etc/hosts' }),
      501,
      'capability_unavailable',
    ],
    [
      'a capability that is not there',
      () => aRequest(own, 'fs.read', { path: '/etc/hosts' }),
      501,
      'capability_unavailable',
    ],
  ])('%s is refused with its own code', async (_, request, status, code) => {
    expect(await agent.post(request())).toMatchObject({ status, answer: { ok: false, error: { code } } })
  })

  test('a body over a mebibyte is not read', async () => {
    const body = JSON.stringify(exec(['echo', 'x'.repeat(1_100_000)]))
    const status = await new Promise((resolve, reject) => {
      const sent = httpRequest(`${agent.url}/capability`, { method: 'POST' }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      sent.on('error', reject)
      sent.end(body)
    }).catch((error) => error.code)
    expect([413, 'EPIPE', 'ECONNRESET']).toContain(status)
    expect((await agent.health()).status).toBe('ready')
  })

  test('the same request twice is a replay, also after a restart, and so is one from before its memory', async () => {
    const request = exec(['uptime'])
    expect((await agent.post(request)).status).toBe(200)
    expect(await agent.post(request)).toMatchObject({ status: 409, answer: { error: { code: 'replayed_nonce' } } })
    await agent.kill()
    await agent.up()
    expect(await agent.post(request)).toMatchObject({ status: 409, answer: { error: { code: 'replayed_nonce' } } })
    const early = exec(['uptime'])
    await agent.kill()
    rmSync(join(agent.state, 'nonces'))
    await agent.up()
    expect(await agent.post(early)).toMatchObject({ answer: { error: { code: 'replayed_nonce' } } })
    expect((await agent.call('shell.exec', { argv: ['uptime'] })).answer.ok).toBe(true)
  })

  test('a repeated key is answered from the journal, also after a restart; another body under it is refused', async () => {
    const file = join(place.path, 'counter')
    const args = { text: `echo once >> ${file}` }
    const key = { idempotency_key: 'inc_1:step:7' }
    const first = await agent.granted('shell.eval', args, key)
    const second = await agent.granted('shell.eval', args, key)
    await agent.kill()
    await agent.up()
    const third = await agent.call('shell.eval', args, key)
    for (const { answer } of [second, third]) {
      expect(answer).toEqual({ ...first.answer, request_id: answer.request_id })
    }
    expect(readFileSync(file, 'utf8')).toBe('once\n')
    const other = await agent.granted('shell.eval', { text: `echo twice >> ${file}` }, key)
    expect(other).toMatchObject({ status: 422, answer: { error: { code: 'idempotency_key_reused' } } })
  })

  test('a journal that is gone stops writes until somebody accepts that; reads go on', async () => {
    const lost = await startAgent(own)
    try {
      const file = join(place.path, 'lost')
      expect((await lost.granted('shell.exec', { argv: ['touch', file] })).answer.ok).toBe(true)
      await lost.kill()
      rmSync(join(lost.state, 'journal'), { recursive: true })
      rmSync(file)
      await lost.up()
      expect(await lost.health()).toMatchObject({
        status: 'ready',
        reason: expect.stringContaining('the journal is gone'),
      })
      const refused = await lost.granted('shell.exec', { argv: ['touch', file] })
      expect(refused).toMatchObject({ status: 409, answer: { error: { code: 'indeterminate' } } })
      expect(existsSync(file)).toBe(false)
      expect((await lost.call('shell.exec', { argv: ['uptime'] })).answer.ok).toBe(true)
      await lost.kill()
      await lost.up(['--accept-lost-journal'])
      expect(await lost.health()).toMatchObject({ status: 'ready', reason: null })
      expect((await lost.granted('shell.exec', { argv: ['touch', file] })).answer.ok).toBe(true)
    } finally {
      await lost.stop()
    }
  })

  test.each([
    ['unsigned', () => ({ ...aManifest(own), signature: undefined }), 'unsigned'],
    ['altered', () => ({ ...aManifest(own), mode: 'all' }), 'altered'],
    ['signed by another root', () => signed(aManifest(own), stranger), 'altered'],
    ['expired', () => aManifest(own, { expires_at: inSeconds(-1) }), 'expired'],
    ['no JSON', () => 'x', 'not JSON'],
  ])('with a manifest that is %s the agent tells its health and does nothing', async (_, manifest, reason) => {
    const text = manifest()
    const closed = await startAgent(own, { manifest: typeof text === 'string' ? text : JSON.stringify(text) })
    try {
      expect(await closed.health()).toMatchObject({
        status: 'refusing',
        reason: expect.stringContaining(reason),
        manifest_id: null,
      })
      expect(await closed.call('shell.exec', { argv: ['uptime'] })).toMatchObject({
        status: 503,
        answer: { ok: false, error: { code: 'manifest_invalid', message: expect.stringContaining(reason) } },
      })
      expect((await fetch(`${closed.url}/operations/${newRequestId()}`)).status).toBe(503)
    } finally {
      await closed.stop()
    }
  })

  test('the manifest is read again on SIGHUP: keys rotate, and another device, though well signed, is refused', async () => {
    const rotated = generateKeyPairSync('ed25519')
    const turning = await startAgent(own)
    const hangUp = async (manifest: unknown, holds: RegExp) => {
      writeFileSync(turning.manifestFile, JSON.stringify(manifest))
      turning.hangUp()
      await eventually('the manifest to be read', () => holds.test(turning.said))
    }
    try {
      const key = { id: 'cp-2', public_key: writePublicKey(rotated.publicKey), not_after: null }
      await hangUp(aManifest(own, { id: 'manifest_v2', keys: [key] }), /ready, manifest_v2/)
      expect(await turning.call('shell.exec', { argv: ['uptime'] })).toMatchObject({
        status: 401,
        answer: { error: { code: 'unknown_key' } },
      })
      const fresh = signed(exec(['uptime']), { id: 'cp-2', key: rotated.privateKey })
      expect((await turning.post(fresh)).answer.ok).toBe(true)
      await hangUp(aManifest(own, { device: 'web-2' }), /refusing.*for web-2/)
      expect((await turning.post(exec(['uptime']))).answer.error?.code).toBe('manifest_invalid')
    } finally {
      await turning.stop()
    }
  })

  test('the agent does not listen to the world without TLS', async () => {
    writeFileSync(join(place.path, 'manifest.json'), JSON.stringify(aManifest(own)))
    writeFileSync(join(place.path, 'root-key'), writePublicKey(own.rootPublic))
    const args = ['mesh', 'agent', '--manifest', join(place.path, 'manifest.json'), '--state', place.path]
    const { code, stderr } = await runCli([...args, '--listen', '0.0.0.0:0'])
    expect([code, stderr]).toEqual([1, expect.stringContaining('needs --tls-cert and --tls-key')])
    const second = await runCli([...args, '--listen', 'localhost:0'])
    expect([second.code, second.stderr]).toEqual([2, expect.stringContaining('takes an address')])
  })

  test('two agents do not share a state directory', async () => {
    const args = ['mesh', 'agent', '--manifest', agent.manifestFile, '--state', agent.state, '--listen', '127.0.0.1:0']
    expect((await runCli(args)).stderr).toContain('Another agent')
  })

  test('what is no request is answered in kind', async () => {
    expect((await fetch(`${agent.url}/`)).status).toBe(404)
    const unknown = `/operations/${newRequestId()}`
    expect((await fetch(`${agent.url}${unknown}`)).status).toBe(401)
    expect((await fetch(`${agent.url}${unknown}`, { headers: aLeave(unknown, own.control) })).status).toBe(404)
    expect((await fetch(`${agent.url}/capability`)).status).toBe(404)
    const { status, answer } = await agent.post({ request_id: newRequestId(), nonce: randomBytes(3).toString('hex') })
    expect([status, answer.error?.code, answer.audit_hash]).toEqual([400, 'malformed', null])
  })
})

describe('guard', () => {
  describe('guard', () => {
    const own = keys()
    // Tables are made when this file is loaded, and held to the guard minutes later on a busy machine: they share one moment.
    const nowMs = Date.now()
    const inTime = { issued_at: inSeconds(0, nowMs), expires_at: inSeconds(120, nowMs) }
    const touch = { argv: ['touch', '/tmp/x'] }

    function guarded(changes: Partial<GuardContext> = {}, manifest: Record<string, unknown> = {}): GuardContext {
      return {
        manifest: manifestSchema.parse(aManifest(own, manifest)) as Manifest,
        keys: new Map([[own.control.id, { key: own.controlPublic, notAfterMs: null }]]),
        available: new Map(allCapabilities.map((capability) => [capability.capability, capability])),
        unavailable: {},
        sandbox: 'unshare',
        hidden: [],
        nowMs,
        isUsedGrant: () => false,
        ...changes,
      }
    }

    function asking(
      capability: 'shell.exec' | 'shell.eval',
      args: Record<string, unknown>,
      changes: Record<string, unknown> = {},
    ) {
      return {
        stream: false,
        rehearse: false,
        ...aRequest(own, capability, args, changes),
      } as unknown as CapabilityRequest
    }

    function granted(change: Record<string, unknown> = {}, sign = own.control): CapabilityRequest {
      const request_id = newRequestId()
      const grant = aGrant(own, { request_id, capability: 'shell.exec', args: touch })
      return asking('shell.exec', touch, { request_id, grant: signed({ ...grant, ...inTime, ...change }, sign) })
    }

    test('a proven read runs at once, and a write with a grant for it', () => {
      expect(rule(asking('shell.exec', { argv: ['uptime'] }), guarded())).toMatchObject({
        ok: true,
        approval: 'auto_approved',
        effect: 'read',
      })
      expect(rule(granted(), guarded())).toMatchObject({
        ok: true,
        approval: 'granted',
        effect: 'write',
        command: 'touch /tmp/x',
      })
    })

    test('where another user confines reads, what obeys nothing runs', () => {
      const ruling = rule(asking('shell.exec', { argv: ['df', '-h'] }), guarded({ sandbox: 'user' }))
      expect(ruling).toMatchObject({ ok: true, approval: 'auto_approved' })
    })

    test('an unasked read says what it rests on, and a granted one rests on the grant', () => {
      const argv = ['git', 'status']
      expect(rule(asking('shell.exec', { argv, cwd: '/srv' }), guarded())).toMatchObject({
        rests: { conditions: [{ kind: 'git_settings', directories: ['/srv'] }], cwd: '/srv', sees: [] },
      })
      expect(rule(granted(), guarded())).toMatchObject({ rests: null })
    })

    test.each([
      ['a write', asking('shell.exec', touch), {}, {}, 'approval_required'],
      [
        'a read where everything is asked',
        asking('shell.exec', { argv: ['uptime'] }),
        {},
        { mode: 'sudo' },
        'approval_required',
      ],
      [
        'a read where none can be confined',
        asking('shell.exec', { argv: ['uptime'] }),
        { sandbox: 'none' as const },
        {},
        'approval_required',
      ],
      [
        'a program that obeys files, where another user is all that confines it',
        asking('shell.exec', { argv: ['git', 'status'] }),
        { sandbox: 'user' as const },
        {},
        'approval_required',
      ],
      [
        'what beside it obeys files, where the network is seen',
        asking('shell.eval', { text: 'ss -tln; git status' }),
        {},
        {},
        'approval_required',
      ],
      [
        'a read by a program that may not run unasked',
        asking('shell.eval', { text: 'df -h | head' }),
        {},
        { auto_approve: ['df'] },
        'approval_required',
      ],
      ['an endless read', asking('shell.exec', { argv: ['tail', '-f', '/var/log/syslog'] }), {}, {}, 'blocked'],
      ['words it does not take', asking('shell.exec', { argv: [] }), {}, {}, 'invalid_arguments'],
      [
        'something the manifest does not list',
        asking('shell.exec', { argv: ['uptime'] }),
        {},
        { capabilities: ['fs.read'] },
        'capability_unavailable',
      ],
      [
        'something this device lacks',
        asking('shell.exec', { argv: ['uptime'] }),
        { available: new Map(), unavailable: { 'shell.exec': 'no processes here' } },
        {},
        'capability_unavailable',
      ],
    ])('%s is not done', (_, request, world, manifest, code) => {
      expect(rule(request, guarded(world, manifest))).toMatchObject({ ok: false, code })
    })

    test('no grant lifts the hard list', () => {
      const args = { argv: ['rm', '-rf', '/'] }
      const request_id = newRequestId()
      const grant = aGrant(own, { request_id, capability: 'shell.exec', args }, inTime)
      for (const mode of ['user', 'sudo', 'all']) {
        const ruling = rule(asking('shell.exec', args, { request_id, grant }), guarded({}, { mode }))
        expect(ruling).toMatchObject({ ok: false, code: 'blocked', approval: 'refused' })
      }
    })

    test('what would never end is refused with a form that does', () => {
      const ruling = rule(asking('shell.exec', { argv: ['journalctl', '-f', '-u', 'nginx'] }), guarded())
      expect(ruling).toMatchObject({
        ok: false,
        code: 'blocked',
        message: expect.stringMatching(/Instead: .*journalctl/),
      })
    })

    const stranger = { id: own.control.id, key: generateKeyPairSync('ed25519').privateKey }
    test.each([
      ['signed by a stranger', granted({}, stranger), 'grant_forged'],
      ['signed with a key nobody knows', granted({}, { ...own.control, id: 'cp-9' }), 'grant_forged'],
      ['for another device', granted({ device: 'web-2' }), 'grant_wrong_device'],
      ['for other arguments', granted({ args_digest: 'a'.repeat(64) }), 'grant_altered'],
      ['for another request', granted({ request_id: newRequestId() }), 'grant_altered'],
      ['for another capability', granted({ capability: 'shell.eval' }), 'grant_altered'],
      ['that has ended', granted({ expires_at: inSeconds(-1, nowMs) }), 'grant_expired'],
      [
        'that claims to live for a day',
        granted({ issued_at: inSeconds(-121, nowMs), expires_at: inSeconds(86_400, nowMs) }),
        'grant_expired',
      ],
      [
        'from the future',
        granted({ issued_at: inSeconds(400, nowMs), expires_at: inSeconds(500, nowMs) }),
        'grant_expired',
      ],
    ])('a grant %s allows nothing', (_, request, code) => {
      expect(rule(request, guarded())).toMatchObject({ ok: false, code, approval: 'refused' })
    })

    test('a used grant allows nothing, and a bad one is refused even where none is needed', () => {
      expect(rule(granted(), guarded({ isUsedGrant: () => true }))).toMatchObject({ ok: false, code: 'grant_replayed' })
      const args = { argv: ['uptime'] }
      const request_id = newRequestId()
      const grant = signed(aGrant(own, { request_id, capability: 'shell.exec', args }, inTime), stranger)
      expect(rule(asking('shell.exec', args, { request_id, grant }), guarded())).toMatchObject({
        ok: false,
        code: 'grant_forged',
      })
    })

    test('a request whose arguments were changed after the grant is refused, also when it is signed', () => {
      const request_id = newRequestId()
      const grant = aGrant(own, { request_id, capability: 'shell.exec', args: touch }, inTime)
      const other = asking('shell.exec', { argv: ['touch', '/etc/passwd'] }, { request_id, grant })
      expect(rule(other, guarded())).toMatchObject({ ok: false, code: 'grant_altered' })
    })
  })

  describe('verify request', () => {
    const own = keys()
    const stranger = generateKeyPairSync('ed25519')
    const nowMs = Date.now()
    const known: TrustedKeys = new Map([
      [own.control.id, { key: own.controlPublic, notAfterMs: null }],
      ['cp-0', { key: own.controlPublic, notAfterMs: nowMs - 1 }],
    ])
    const seen = 'AAAAAAAAAAAAAAAAAAAAAA=='
    const step = (changes: Partial<VerificationContext> = {}): VerificationContext => ({
      device: 'web-1',
      keys: known,
      nowMs,
      hasSeen: (nonce) => nonce === seen,
      forgottenBeforeMs: null,
      ...changes,
    })
    const bytes = (value: unknown) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
    const uptime = (changes: Record<string, unknown> = {}) => aRequest(own, 'shell.exec', { argv: ['uptime'] }, changes)
    const at = (seconds: number) => inSeconds(seconds, nowMs)

    test('a request of the control plane, for this device, now and for the first time, is let in', () => {
      expect(verifyCall(bytes(uptime({ issued_at: at(0), deadline: at(60) })), step())).toMatchObject({
        ok: true,
        request: { device: 'web-1', stream: false, rehearse: false },
      })
    })

    test.each([
      ['is no JSON', 'uptime', 'malformed'],
      ['is no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'malformed'],
      ['lacks everything', {}, 'malformed'],
      ['has a field nobody knows', { ...uptime(), sudo: true }, 'malformed'],
      ['is larger than a mebibyte', `"${'x'.repeat(bodyBytes)}"`, 'malformed'],
      ['asks for what is no name of a capability', uptime({ capability: 'fs delete' }), 'malformed'],
      [
        'is signed with a key nobody gave it',
        signed(uptime(), { id: 'cp-9', key: stranger.privateKey }),
        'unknown_key',
      ],
      [
        'is signed with an old key after its rotation',
        signed(uptime(), { id: 'cp-0', key: own.control.key }),
        'unknown_key',
      ],
      ['is signed by a stranger', signed(uptime(), { id: own.control.id, key: stranger.privateKey }), 'bad_signature'],
      ['was changed on its way', { ...uptime(), args: { argv: ['reboot'] } }, 'bad_signature'],
      ['had a default written into it', { ...uptime(), stream: true }, 'bad_signature'],
      ['is for another device', uptime({ device: 'web-2' }), 'wrong_device'],
      ['was due a moment ago', uptime({ deadline: at(0) }), 'bad_deadline'],
      ['may take two hours', uptime({ deadline: at(7200) }), 'bad_deadline'],
      ['was issued six minutes ago', uptime({ issued_at: at(-360) }), 'clock_skew'],
      ['will be issued in six minutes', uptime({ issued_at: at(360) }), 'clock_skew'],
      ['was here before', uptime({ nonce: seen }), 'replayed_nonce'],
    ])('a request that %s is turned away', (_, body, code) => {
      expect(verifyCall(Buffer.isBuffer(body) ? body : bytes(body), step())).toMatchObject({ ok: false, code })
    })

    test.each([-299, 0, 299])('clocks may be %s seconds apart', (seconds) => {
      expect(verifyCall(bytes(uptime({ issued_at: at(seconds), deadline: at(60) })), step()).ok).toBe(true)
    })

    test('an agent that lost its nonces takes nothing from before its start', () => {
      const lost = step({ forgottenBeforeMs: nowMs })
      const before = verifyCall(bytes(uptime({ issued_at: at(-1), deadline: at(60) })), lost)
      expect(before).toMatchObject({ ok: false, code: 'replayed_nonce' })
      expect(verifyCall(bytes(uptime({ issued_at: at(0), deadline: at(60) })), lost).ok).toBe(true)
    })

    test('a cancel passes the same door', () => {
      const { request_id, nonce, issued_at, device } = uptime({ issued_at: at(0) })
      const cancel = signed({ request_id, nonce, issued_at, device }, own.control)
      expect(verifyCancel(bytes(cancel), step()).ok).toBe(true)
      expect(verifyCancel(bytes({ ...cancel, device: 'web-2' }), step())).toMatchObject({ code: 'bad_signature' })
      expect(verifyCancel(bytes(signed({ ...cancel, nonce: seen }, own.control)), step())).toMatchObject({
        code: 'replayed_nonce',
      })
      expect(verifyCancel(bytes(uptime()), step())).toMatchObject({ code: 'malformed' })
    })
  })
})
