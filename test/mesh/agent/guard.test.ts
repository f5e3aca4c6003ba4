import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { type CapabilityRequest, type Manifest, manifest as manifestSchema } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import { type GuardContext, rule } from '../../../mesh/agent/guard.ts'
import type { TrustedKeys } from '../../../mesh/agent/manifest.ts'
import { bodyBytes, type VerificationContext, verifyCall, verifyCancel } from '../../../mesh/agent/verify-request.ts'
import { signed } from '../../../mesh/sign.ts'
import { aGrant, aManifest, aRequest, inSeconds, keys, newRequestId } from './running.ts'

describe('guard', () => {
  const own = keys()
  const nowMs = Date.now()
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
    return asking('shell.exec', touch, { request_id, grant: signed({ ...grant, ...change }, sign) })
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
    const grant = aGrant(own, { request_id, capability: 'shell.exec', args })
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
    const grant = signed(aGrant(own, { request_id, capability: 'shell.exec', args }), stranger)
    expect(rule(asking('shell.exec', args, { request_id, grant }), guarded())).toMatchObject({
      ok: false,
      code: 'grant_forged',
    })
  })

  test('a request whose arguments were changed after the grant is refused, also when it is signed', () => {
    const request_id = newRequestId()
    const grant = aGrant(own, { request_id, capability: 'shell.exec', args: touch })
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
    ['asks for no capability there is', uptime({ capability: 'fs.delete' }), 'malformed'],
    ['is signed with a key nobody gave it', signed(uptime(), { id: 'cp-9', key: stranger.privateKey }), 'unknown_key'],
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
