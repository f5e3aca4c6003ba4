import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from '@jest/globals'
import { type CapabilityRequest, type Manifest, manifest as manifestSchema } from '../../../domain/mesh.ts'
import { allCapabilities } from '../../../mesh/agent/agent-state.ts'
import { type GuardContext, rule } from '../../../mesh/agent/guard.ts'
import { signed } from '../../../mesh/sign.ts'
import { aGrant, aManifest, aRequest, inSeconds, keys, newRequestId } from '../../support/running-agent.ts'

const own = keys()
// Tables are made when this file is loaded, and held to the guard minutes later on a busy machine:
// they share one moment.
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
    names: [],
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

test('if another user confines reads, a program that obeys no settings runs without approval', () => {
  const ruling = rule(asking('shell.exec', { argv: ['df', '-h'] }), guarded({ sandbox: 'user' }))
  expect(ruling).toMatchObject({ ok: true, approval: 'auto_approved' })
})

test('an unasked read names its basis, and the basis of a granted one is the grant', () => {
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

test('an endless command is refused with a form that ends', () => {
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

test('a used grant allows nothing, and a bad one is refused even if none is needed', () => {
  expect(rule(granted(), guarded({ isUsedGrant: () => true }))).toMatchObject({ ok: false, code: 'grant_replayed' })
  const args = { argv: ['uptime'] }
  const request_id = newRequestId()
  const grant = signed(aGrant(own, { request_id, capability: 'shell.exec', args }, inTime), stranger)
  expect(rule(asking('shell.exec', args, { request_id, grant }), guarded())).toMatchObject({
    ok: false,
    code: 'grant_forged',
  })
})

test('a request whose arguments were changed after the grant is refused, also if it is signed', () => {
  const request_id = newRequestId()
  const grant = aGrant(own, { request_id, capability: 'shell.exec', args: touch }, inTime)
  const other = asking('shell.exec', { argv: ['touch', '/etc/passwd'] }, { request_id, grant })
  expect(rule(other, guarded())).toMatchObject({ ok: false, code: 'grant_altered' })
})
