import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from '@jest/globals'
import type { TrustedKeys } from '../../../mesh/agent/manifest.ts'
import { bodyBytes, type VerificationContext, verifyCall, verifyCancel } from '../../../mesh/agent/verify-request.ts'
import { signed } from '../../../mesh/sign.ts'
import { aRequest, inSeconds, keys } from '../../support/running-agent.ts'

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

test('a request of the control plane, for this device, in time and for the first time, is accepted', () => {
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
])('a request that %s is refused', (_, body, code) => {
  expect(verifyCall(Buffer.isBuffer(body) ? body : bytes(body), step())).toMatchObject({ ok: false, code })
})

test.each([-299, 0, 299])('clocks may differ by %s seconds', (seconds) => {
  expect(verifyCall(bytes(uptime({ issued_at: at(seconds), deadline: at(60) })), step()).ok).toBe(true)
})

test('an agent that lost its nonces accepts no request from before its start', () => {
  const lost = step({ forgottenBeforeMs: nowMs })
  const before = verifyCall(bytes(uptime({ issued_at: at(-1), deadline: at(60) })), lost)
  expect(before).toMatchObject({ ok: false, code: 'replayed_nonce' })
  expect(verifyCall(bytes(uptime({ issued_at: at(0), deadline: at(60) })), lost).ok).toBe(true)
})

test('a cancel gets the same checks', () => {
  const { request_id, nonce, issued_at, device } = uptime({ issued_at: at(0) })
  const cancel = signed({ request_id, nonce, issued_at, device }, own.control)
  expect(verifyCancel(bytes(cancel), step()).ok).toBe(true)
  expect(verifyCancel(bytes({ ...cancel, device: 'web-2' }), step())).toMatchObject({ code: 'bad_signature' })
  expect(verifyCancel(bytes(signed({ ...cancel, nonce: seen }, own.control)), step())).toMatchObject({
    code: 'replayed_nonce',
  })
  expect(verifyCancel(bytes(uptime()), step())).toMatchObject({ code: 'malformed' })
})
