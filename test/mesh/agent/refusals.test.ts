import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { signed, writePublicKey } from '../../../mesh/sign.ts'
import { eventually, temporaryDirectory } from '../../support/directory.ts'
import { runCli } from '../../support/run-cli.ts'
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
} from '../../support/running-agent.ts'

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

test('a signed read runs at once and returns its result', async () => {
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

test('forged, replayed, expired, foreign and changed grants have different refusals, and nothing is done', async () => {
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

test("the same request twice is a replay, also after a restart, and so is one from before the agent's memory", async () => {
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

test('a repeated key is answered from the journal, also after a restart, and another body under it is refused', async () => {
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

test('a lost journal stops writes until a person accepts that, and reads continue', async () => {
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
])('with a manifest that is %s the agent reports its health and does nothing', async (_, manifest, reason) => {
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

test('the manifest is read again on SIGHUP: keys rotate, and a signed manifest of another device is refused', async () => {
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

test('the agent does not listen on other addresses without TLS', async () => {
  writeFileSync(join(place.path, 'manifest.json'), JSON.stringify(aManifest(own)))
  writeFileSync(join(place.path, 'root-key'), writePublicKey(own.rootPublic))
  const args = ['mesh', 'agent', '--manifest', join(place.path, 'manifest.json'), '--state', place.path]
  const { code, stderr } = await runCli([...args, '--listen', '0.0.0.0:0'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('set --tls-cert and --tls-key')])
  const second = await runCli([...args, '--listen', 'localhost:0'])
  expect([second.code, second.stderr]).toEqual([2, expect.stringContaining('takes an address')])
})

test('two agents do not share a state directory', async () => {
  const args = ['mesh', 'agent', '--manifest', agent.manifestFile, '--state', agent.state, '--listen', '127.0.0.1:0']
  expect((await runCli(args)).stderr).toContain('Another agent')
})

test('an invalid request gets an answer in the same form', async () => {
  expect((await fetch(`${agent.url}/`)).status).toBe(404)
  const unknown = `/operations/${newRequestId()}`
  expect((await fetch(`${agent.url}${unknown}`)).status).toBe(401)
  expect((await fetch(`${agent.url}${unknown}`, { headers: aLeave(unknown, own.control) })).status).toBe(404)
  expect((await fetch(`${agent.url}/capability`)).status).toBe(404)
  const { status, answer } = await agent.post({ request_id: newRequestId(), nonce: randomBytes(3).toString('hex') })
  expect([status, answer.error?.code, answer.audit_hash]).toEqual([400, 'malformed', null])
})
